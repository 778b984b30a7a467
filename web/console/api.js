// The owner API as these pages see it. A console session has two halves: a
// cookie that scripts cannot read, and this key that the cookie is worthless
// without. The key is kept for this tab and origin, with the instance of the
// program that gave it: once that has ended, another program may be listening
// here, and it is sent nothing.

const place = "chaperone.console.key";
let onLoggedOut = () => {};

const session = () => JSON.parse(sessionStorage.getItem(place) ?? "null"); // {key, instance}
const forget = () => sessionStorage.removeItem(place);
export const loggedIn = () => session() !== null;
export function whenLoggedOut(f) { onLoggedOut = f; }

export class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

// instance asks, without either half, which process listens here.
async function instance() {
  try {
    const answer = await fetch("/health/live", { cache: "no-store", credentials: "omit", redirect: "error" });
    return answer.headers.get("Chaperone-Instance") ?? "";
  } catch {
    throw new Refusal("unreachable", "Chaperone does not answer. Is it still running?");
  }
}

// key is ours, if the program that gave it is still there.
async function key() {
  const mine = session();
  if (!mine || await instance() === mine.instance) return mine?.key;
  forget();
  onLoggedOut();
  throw new Refusal("authentication_error", "Chaperone was started again. Log in with a new code.");
}

async function request(method, path, body, headers = {}) {
  const init = { method, headers: { ...headers }, cache: "no-store", credentials: "same-origin", redirect: "error" };
  const half = await key();
  if (half) init.headers["X-Console-Key"] = half;
  if (body instanceof Blob) {
    init.headers["Content-Type"] = "application/octet-stream";
    init.body = body;
  } else if (body !== undefined) {
    init.headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, init);
  } catch {
    throw new Refusal("unreachable", "Chaperone does not answer. Is it still running?");
  }
  if (answer.ok) return answer;
  const { error } = await answer.json().catch(() => ({}));
  if (answer.status === 401 && path !== "/v1/console-session") {
    forget();
    onLoggedOut();
  }
  throw new Refusal(error?.code ?? "unknown", error?.message ?? `The request was refused (${answer.status}).`);
}

async function ask(method, path, body, headers) {
  const answer = await request(method, path, body, headers);
  return answer.status === 204 ? undefined : answer.json();
}

export const bytes = async (path) => (await request("GET", path)).arrayBuffer();
export const get = (path) => ask("GET", path);
export const post = (path, body, headers) => ask("POST", path, body, headers);
export const remove = (path) => ask("DELETE", path);

export async function logIn(code) {
  const now = await instance();
  const { page_key: key } = await post("/v1/console-session", { code });
  sessionStorage.setItem(place, JSON.stringify({ key, instance: now }));
}

export async function logOut() {
  await remove("/v1/console-session");
  forget();
  onLoggedOut();
}

// events calls heard for every event until the signal aborts, and state with
// "live" or "lost" as the connection comes and goes.
export async function events(signal, heard, state) {
  let seen;
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 15000)) {
    try {
      const headers = seen === undefined ? {} : { "Last-Event-ID": seen };
      const answer = await fetch("/v1/events", { headers: { ...headers, "X-Console-Key": await key() ?? "" }, cache: "no-store", signal });
      if (answer.status === 401) {
        forget();
        onLoggedOut();
        return;
      }
      if (!answer.ok) throw new Error("refused");
      state("live");
      wait = 500;
      for await (const event of parse(answer.body)) {
        seen = event.id;
        heard(event);
      }
    } catch {
      // Lost or refused: both mean the same, try again.
    }
    if (signal.aborted) return;
    state("lost");
    await new Promise((done) => setTimeout(done, wait));
  }
}

async function* parse(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = {};
      for (const line of block.split("\n")) {
        if (line.startsWith("id: ")) event.id = line.slice(4);
        if (line.startsWith("data: ")) Object.assign(event, JSON.parse(line.slice(6)));
      }
      if (event.kind) yield event;
    }
  }
}
