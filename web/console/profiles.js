// Profiles: which websites, in which state, and the owner's means over them.
import { get, post, remove } from "./api.js";
import { busy, chip, confirm, dialog, el, empty, facts, head, notice, replace } from "./dom.js";
import { ago, ceremonyOutcome, host, left, profileState } from "./words.js";

export const title = "Profiles";

export function page(main) {
  const list = el("ul", { class: "list" });
  const none = empty("No profile yet", "A profile is one sign-in to one website, sealed so that no agent ever sees it.");
  none.hidden = true;
  const add = el("button", { type: "button", class: "main", "data-key": "new", onclick: () => create(refresh) }, "New profile");
  main.replaceChildren(head("Profiles", "You sign in yourself, in a browser that agents cannot see. They get the use of the session, never the session.", add), list, none);
  let open = [];

  async function refresh() {
    const { profiles } = await get("/v1/browser-profiles");
    open = profiles.map((p) => p.open_ceremony).filter(Boolean);
    none.hidden = profiles.length > 0;
    replace(list, profiles.map((p) => row(p, refresh)));
  }

  // An open sign-in ends in another tab; asking for it records the outcome.
  async function follow() {
    for (const c of open) {
      const clock = list.querySelector(`[data-left="${CSS.escape(c.id)}"]`);
      if (clock) clock.textContent = left(c.expires_at);
    }
    if (!open.length || document.hidden || follow.running || ++follow.beat % 2) return;
    follow.running = true;
    for (const c of open) {
      const now = await get(`/v1/browser-authentication-ceremonies/${c.id}`).catch(() => undefined);
      const outcome = now && ceremonyOutcome(now.status);
      if (outcome) notice(outcome);
      if (outcome || new Date(c.expires_at) < Date.now()) await refresh().catch(() => {});
    }
    follow.running = false;
  }
  follow.beat = 0;
  follow.running = false;
  const timer = setInterval(follow, 1000);
  const back = () => { if (!document.hidden) refresh().catch(() => {}); };
  document.addEventListener("visibilitychange", back);
  return { refresh, leave: () => { clearInterval(timer); document.removeEventListener("visibilitychange", back); } };
}

function row(p, refresh) {
  const [word, tone] = profileState(p.status);
  const sites = p.allowed_origins.map(host);
  const name = sites[0];
  const ceremony = p.open_ceremony;
  return el("li", { class: "card", "data-profile": p.id },
    el("div", { class: "row between" }, el("ul", { class: "names" }, sites.map((s) => el("li", {}, s))), ceremony ? chip("Signing in", "warn") : chip(word, tone)),
    facts([["Last used", p.last_used_at ? ago(p.last_used_at) : "never"], ["Created", ago(p.created_at)], ["Profile", el("span", { class: "mono" }, p.id)]]),
    ceremony && el("p", { class: "soft small" }, "The sign-in is open in another tab; agents are kept away meanwhile. ", el("span", { "data-left": ceremony.id }, left(ceremony.expires_at)), " left."),
    el("div", { class: "row actions" }, actions(p, name, refresh)));
}

function actions(p, name, refresh) {
  const named = (verb) => ({ type: "button", "aria-label": `${verb} ${name}`, "data-key": `${verb} ${p.id}` });
  if (p.status === "revoked") {
    return [el("button", {
      ...named("Delete"), class: "danger",
      onclick: () => confirm(`Delete ${name}?`, "The sealed session and the profile are removed for good.", "Delete", async () => {
        await remove(`/v1/browser-profiles/${p.id}`);
        notice("Deleted.");
        await refresh();
      }),
    }, "Delete")];
  }
  const revoke = el("button", {
    ...named("Revoke"), class: "danger",
    onclick: () => confirm(`Revoke ${name}?`, "Every agent loses it at once, open browsers are closed, and it cannot be used again. To go on later you create a new profile.", "Revoke", async () => {
      try {
        await post(`/v1/browser-profiles/${p.id}/revoke`);
        notice("Revoked. No agent can use it any more.");
      } finally {
        await refresh();
      }
    }),
  }, "Revoke");
  if (p.status === "provisioning") return [revoke];
  const ceremony = p.open_ceremony;
  if (ceremony) {
    const cancel = el("button", { ...named("Cancel sign-in"), onclick: () => busy(cancel, async () => {
      await post(`/v1/browser-authentication-ceremonies/${ceremony.id}/cancel`);
      await refresh();
    }) }, "Cancel sign-in");
    return [cancel, revoke];
  }
  return [el("button", { ...named("Sign in"), class: p.status === "ready" ? "" : "main", onclick: () => signIn(p, name, refresh) }, p.status === "ready" ? "Sign in again" : "Sign in"), revoke];
}

// signIn begins a ceremony, then offers its address as a link: the owner opens
// it, and the address, which works once, is nowhere else.
function signIn(p, name, refresh) {
  dialog(`Sign in to ${name}`, (close, whenClosed) => {
    const input = el("input", { id: "login-url", type: "url", maxlength: 4096, placeholder: `${p.allowed_origins[0]}/`, autocomplete: "off", spellcheck: "false", "aria-describedby": "login-url-help" });
    const failure = el("p", { class: "error", role: "alert" });
    const go = el("button", { class: "main", autofocus: true }, "Start a browser");
    const form = el("form", {},
      el("p", { class: "soft" }, "Chaperone starts a fresh browser in which only you can see and type. Agents are kept away from this profile until you are done."),
      el("div", { class: "field" }, el("label", { for: "login-url" }, "Start address (optional)"), input, el("p", { class: "soft small", id: "login-url-help" }, "The page with the sign-in form, if it is not the home page.")),
      failure, el("div", { class: "row end" }, el("button", { type: "button", onclick: close }, "Cancel"), go));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      failure.textContent = "";
      go.disabled = true;
      go.textContent = "Starting…";
      try {
        const begun = await post(`/v1/browser-profiles/${p.id}/authentication-ceremonies`, { login_url: input.value.trim() || undefined });
        offer(form, begun, close, whenClosed, refresh);
      } catch (err) {
        failure.textContent = err.message;
        go.disabled = false;
        go.textContent = "Start a browser";
      }
    });
    return form;
  });
}

function offer(form, begun, close, whenClosed, refresh) {
  let opened = false;
  const open = el("a", { class: "button main", id: "open-ceremony", href: begun.launch_url, target: "_blank", rel: "noopener noreferrer" }, "Open the sign-in page");
  open.addEventListener("click", () => {
    opened = true;
    setTimeout(() => { open.removeAttribute("href"); close(); }); // after the browser has followed it
  });
  whenClosed(() => {
    const work = opened ? Promise.resolve() : post(`/v1/browser-authentication-ceremonies/${begun.id}/cancel`);
    work.catch(() => {}).finally(() => refresh().catch(() => {}));
  });
  form.replaceWith(el("div", { class: "body" },
    el("p", { class: "soft" }, "The browser is ready. It waits five minutes, and the address works once."),
    el("div", { class: "row end" }, el("button", { type: "button", onclick: close }, "Cancel"), open)));
  open.focus();
}

function create(refresh) {
  dialog("New profile", (close) => {
    const key = crypto.randomUUID(); // repeating the request cannot make a second profile
    const input = el("textarea", { id: "origins", required: true, placeholder: "https://wiki.example.org", spellcheck: "false", autocapitalize: "off", "aria-describedby": "origins-help", autofocus: true });
    const failure = el("p", { class: "error", role: "alert" });
    const go = el("button", { class: "main" }, "Create");
    return el("form", {
      onsubmit: async (event) => {
        event.preventDefault();
        failure.textContent = "";
        go.disabled = true;
        try {
          await post("/v1/browser-profiles", { allowed_origins: origins(input.value) }, { "Idempotency-Key": key });
          close();
          notice("Created. Sign in to make it ready.");
          await refresh();
        } catch (err) {
          failure.textContent = err.message;
          go.disabled = false;
        }
      },
    }, el("div", { class: "field" }, el("label", { for: "origins" }, "Website addresses, one a line"), input,
      el("p", { class: "soft small", id: "origins-help" }, "Agents can open exactly these. www.example.org and example.org are two.")),
    failure, el("div", { class: "row end" }, el("button", { type: "button", onclick: close }, "Cancel"), go));
  });
}

// origins reads one address a line; a missing scheme means https (WA-01).
function origins(text) {
  return text.split(/\s+/).filter(Boolean).map((line) => {
    try {
      return new URL(/^[a-z]+:\/\//i.test(line) ? line : `https://${line}`).origin;
    } catch {
      return line; // refused with the server's words
    }
  });
}
