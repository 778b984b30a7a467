// The console: which page is shown, what is heard, and the way out.
import { events, loggedIn, logOut, post, whenLoggedOut } from "./api.js";
import { busy, confirm, notice } from "./dom.js";
import { codeFromAddress, loginPage } from "./login.js";
import * as activity from "./activity.js";
import * as approvals from "./approvals.js";
import * as devices from "./devices.js";
import * as profiles from "./profiles.js";

const pages = { approvals, profiles, activity, devices };
const main = document.getElementById("main");
const header = document.getElementById("top");
const count = document.getElementById("count");

let current; // the page that is shown: {refresh, leave}
let hearing; // AbortController of the event stream

function show() {
  const [, name = "approvals", id] = /^#\/([a-z]+)(?:\/([0-9a-f-]{36}))?$/.exec(location.hash) ?? [];
  const shown = pages[name] ? name : "approvals";
  const moved = current !== undefined;
  current?.leave();
  current = pages[shown].page(main, id);
  for (const link of header.querySelectorAll("[data-page]")) {
    if (link.dataset.page === shown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (moved) {
    main.focus();
    window.scrollTo(0, 0);
  }
  current.refresh().catch((err) => notice(err.message));
  label();
}

// label keeps the number of waiting questions in the menu and the tab's title.
async function label() {
  const open = await approvals.waiting().catch(() => undefined);
  if (!open) return;
  count.hidden = open.length === 0;
  count.textContent = String(open.length);
  count.setAttribute("aria-label", `${open.length} waiting`);
  document.title = open.length ? `(${open.length}) Chaperone` : "Chaperone";
}

let due;

// changed refreshes the page once for a burst of events.
function changed() {
  clearTimeout(due);
  due = setTimeout(() => {
    label();
    current?.refresh().catch(() => {});
  }, 60);
}

function connection(state) {
  const link = document.getElementById("link");
  if (state === "live" && link.dataset.state === "lost") changed();
  link.dataset.state = state;
  document.getElementById("link-text").textContent = state === "live" ? "Live" : "Not connected";
}

function enter() {
  header.hidden = false;
  current = undefined;
  show();
  hearing = new AbortController();
  events(hearing.signal, changed, connection);
}

function leave(code = "") {
  hearing?.abort();
  current?.leave();
  current = undefined;
  header.hidden = true;
  document.title = "Chaperone";
  loginPage(main, code, enter);
}

document.getElementById("logout").addEventListener("click", (event) => busy(event.currentTarget, logOut));
document.getElementById("stop").addEventListener("click", () => confirm("Stop all agents?",
  "Every agent session ends now, its browser is closed, and everything that waits for you is withdrawn. Profiles and their sign-ins stay.",
  "Stop all agents", async () => {
    const { sessions_ended: n } = await post("/v1/stop");
    notice(n === 1 ? "Stopped one session." : `Stopped ${n} sessions.`);
    changed();
  }));
function start() {
  const code = codeFromAddress();
  if (code || !loggedIn()) leave(code);
  else if (current) show();
  else enter();
}

window.addEventListener("hashchange", start);
whenLoggedOut(() => { if (current) leave(); });
start();
