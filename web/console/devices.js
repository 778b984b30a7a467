// Agents at work, and the devices that may speak for the owner.
import { get, post, remove } from "./api.js";
import { busy, chip, confirm, dialog, el, empty, facts, head, notice, replace } from "./dom.js";
import { ago, host, imageWords } from "./words.js";

export const title = "Devices";

export function page(main) {
  const agents = el("ul", { class: "list" });
  const devices = el("ul", { class: "list" });
  const give = el("button", { type: "button", "data-key": "give", onclick: () => connect(refresh) }, "Connect an agent");
  main.replaceChildren(
    head("Devices", "Each has a credential of its own, which you can take back at any time."),
    el("div", { class: "head" }, el("h2", {}, "Agents"), give), agents,
    el("div", { class: "head" }, el("h2", {}, "Your devices")), devices);

  async function refresh() {
    const [{ sessions }, { devices: all }] = await Promise.all([get("/v1/agent-sessions"), get("/v1/devices")]);
    const images = new Map(await Promise.all(sessions.map(async (s) => [s.id, (await get(`/v1/agent-sessions/${s.id}/images`)).images])));
    const names = new Map(all.filter((d) => d.session_id).map((d) => [d.session_id, d]));
    replace(agents, sessions.length ? sessions.map((s) => agent(s, names.get(s.id), images.get(s.id), refresh)) : empty("No agent is connected", "An agent gets one profile, or a browser with no sign-in."));
    replace(devices, all.filter((d) => d.role === "owner" && !d.revoked_at).map((d) => device(d, refresh)));
  }
  return { refresh, leave() {} };
}

function agent(s, d, images, refresh) {
  const name = d?.name ?? "agent";
  return el("li", { class: "card" },
    el("div", { class: "row between" }, el("strong", {}, name), chip(s.profile_id ? "Profile" : "No sign-in", s.profile_id ? "good" : "")),
    facts([["Websites", s.allowed_origins.map(host).join(", ")], ["Started", ago(s.created_at)], ["Last seen", d?.last_seen_at && ago(d.last_seen_at)]]),
    images.length > 0 && el("ul", { class: "images" }, images.map((i) => image(s, i, refresh))),
    el("div", { class: "row actions" }, attach(s, name, refresh), el("button", {
      type: "button", class: "danger", "aria-label": `End ${name}`, "data-key": `end ${s.id}`,
      onclick: () => confirm(`End the session of ${name}?`, "Its browser is closed, what it asked for is withdrawn, and its credential stops working.", "End session", async () => {
        await remove(`/v1/agent-sessions/${s.id}`);
        notice("Ended.");
        await refresh();
      }),
    }, "End session")));
}

// image is one that the agent may ask to upload, by its id.
function image(s, i, refresh) {
  const go = el("button", {
    type: "button", class: "quiet", "aria-label": `Remove image ${i.id}`, "data-key": `remove ${i.id}`,
    onclick: () => busy(go, async () => {
      await remove(`/v1/agent-sessions/${s.id}/images/${i.id}`);
      await refresh();
    }),
  }, "Remove");
  return el("li", { class: "row between" }, el("span", {}, imageWords(i), " ", el("code", { class: "mono" }, i.id)), go);
}

function attach(s, name, refresh) {
  const file = el("input", { type: "file", accept: "image/png,image/jpeg,image/webp", hidden: true, "aria-label": `An image for ${name}` });
  const go = el("button", { type: "button", "aria-label": `Attach an image for ${name}`, "data-key": `attach ${s.id}`, onclick: () => file.click() }, "Attach an image");
  file.addEventListener("change", () => busy(go, async () => {
    await post(`/v1/agent-sessions/${s.id}/images`, file.files[0]);
    notice("Attached. Tell the agent the id beside the image.");
    await refresh();
  }));
  return [go, file];
}

function device(d, refresh) {
  return el("li", { class: "card" },
    el("div", { class: "row between" }, el("strong", {}, d.name), d.current && chip("This one", "good")),
    facts([["Last seen", ago(d.last_seen_at) ?? "never"], ["Paired", ago(d.created_at)], ["Fingerprint", el("span", { class: "mono" }, d.fingerprint.slice(0, 16))]]),
    !d.current && el("div", { class: "row actions" }, el("button", {
      type: "button", class: "danger", "aria-label": `Revoke ${d.name}`, "data-key": `revoke ${d.fingerprint}`,
      onclick: () => confirm(`Revoke ${d.name}?`, "It is refused from its next request on.", "Revoke", async () => {
        await remove(`/v1/devices/${d.fingerprint}`);
        notice("Revoked.");
        await refresh();
      }),
    }, "Revoke")));
}

// connect makes a credential for an agent that speaks MCP over HTTP.
async function connect(refresh) {
  const { profiles } = await get("/v1/browser-profiles");
  const ready = profiles.filter((p) => p.status === "ready");
  dialog("Connect an agent", (close) => {
    if (!ready.length) {
      return el("div", { class: "body" }, el("p", { class: "soft" }, "No profile is ready. Sign in to one first."), el("div", { class: "row end" }, el("button", { type: "button", onclick: close }, "Close")));
    }
    const name = el("input", { id: "agent-name", required: true, maxlength: 80, autocomplete: "off", autofocus: true });
    const choice = el("select", { id: "agent-profile" }, ready.map((p) => el("option", { value: p.id }, p.allowed_origins.map(host).join(", "))));
    const go = el("button", { class: "main" }, "Make the credential");
    const form = el("form", {},
      el("div", { class: "field" }, el("label", { for: "agent-name" }, "What you call it"), name),
      el("div", { class: "field" }, el("label", { for: "agent-profile" }, "Profile"), choice),
      el("div", { class: "row end" }, el("button", { type: "button", onclick: close }, "Cancel"), go));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      busy(go, async () => {
        const made = await post("/v1/agent-sessions", { name: name.value.trim(), profile_id: choice.value });
        form.replaceWith(shownOnce(made.credential, close));
        await refresh();
      });
    });
    return form;
  });
}

function shownOnce(credential, close) {
  const copy = el("button", { type: "button", onclick: () => busy(copy, async () => { await navigator.clipboard.writeText(credential); copy.textContent = "Copied"; }) }, "Copy");
  return el("div", { class: "body" },
    el("p", { class: "soft" }, "Give the agent this address and credential. The credential is shown only now."),
    el("div", { class: "secret" }, el("span", { class: "label" }, "Address"), el("code", {}, `${location.origin}/mcp`)),
    el("div", { class: "secret" }, el("span", { class: "label" }, "Bearer credential"), el("code", {}, credential)),
    el("div", { class: "row end" }, copy, el("button", { type: "button", class: "main", onclick: close }, "Done")));
}
