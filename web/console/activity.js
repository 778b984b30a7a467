// Recent activity, from the audit trail: identifiers and our words only.
import { get } from "./api.js";
import { el, empty, head, replace } from "./dom.js";
import { auditKind, dayOf, detailWord, timeOfDay, toolWord } from "./words.js";

export const title = "Activity";

export function page(main) {
  const days = el("div", { class: "list" });
  main.replaceChildren(head("Activity", "The newest first. No page content and no typed text is kept here."), days);

  async function refresh() {
    const { entries } = await get("/v1/audit?limit=100");
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
    replace(days, [...groups].map(([day, list]) => el("section", {}, el("h2", { class: "day" }, day), el("ol", { class: "card log" }, list.map(line)))));
  }
  return { refresh, leave() {} };
}

function line(e) {
  const more = [e.tool && toolWord(e.tool), detailWord(e.detail), e.code, e.subject && `${e.subject.slice(0, 8)}`].filter(Boolean);
  return el("li", {}, el("time", { datetime: e.at }, timeOfDay(e.at)),
    el("div", {}, auditKind(e.kind), more.length > 0 && el("div", { class: "soft small" }, more.join(" · "))));
}
