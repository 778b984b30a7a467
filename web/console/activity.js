// Recent activity, from the audit trail: identifiers and our words only.
import { get } from "./api.js";
import { el, empty, head, replace } from "./dom.js";
import { auditKind, dayOf, detailWord, host, timeOfDay, toolWord } from "./words.js";

export const title = "Activity";

export function page(main) {
  const days = el("div", { class: "list" });
  main.replaceChildren(head("Activity", "The newest first. No page content and no typed text is kept here."), days);

  async function refresh() {
    const [{ entries }, { profiles }] = await Promise.all([get("/v1/audit?limit=100"), get("/v1/browser-profiles")]);
    const sites = new Map(profiles.map((p) => [p.id, host(p.allowed_origins[0])]));
    if (!entries.length) {
      replace(days, empty("Nothing has happened yet", "Every decision and every call will be listed."));
      return;
    }
    const groups = new Map();
    for (const e of entries.reverse()) {
      const day = dayOf(e.at);
      if (!groups.has(day)) groups.set(day, []);
      groups.get(day).push(e);
    }
    replace(days, [...groups].map(([day, list]) => el("section", {}, el("h2", { class: "day" }, day), el("ol", { class: "card log" }, list.map((e) => line(e, sites))))));
  }
  return { refresh, leave() {} };
}

// line is one entry; a profile is named by its first website while it exists.
function line(e, sites) {
  const name = (id) => id && (sites.get(id) ?? id.slice(0, 8));
  const more = [e.tool && toolWord(e.tool), sites.get(e.detail) ?? detailWord(e.detail), e.code, name(e.subject)].filter(Boolean);
  return el("li", {}, el("time", { datetime: e.at }, timeOfDay(e.at)),
    el("div", {}, auditKind(e.kind), more.length > 0 && el("div", { class: "soft small" }, more.join(" · "))));
}
