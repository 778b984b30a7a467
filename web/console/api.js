// The owner API as these pages see it. A console session has two halves: a
// cookie that scripts cannot read, and this key that the cookie is worthless
// without. The key is kept for this origin, port included.

const place = "chaperone.console.key";
let onLoggedOut = () => {};

export const loggedIn = () => localStorage.getItem(place) !== null;
export function whenLoggedOut(f) { onLoggedOut = f; }

export class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

async function request(method, path, body, headers = {}) {
  const init = { method, headers: { ...headers }, cache: "no-store", credentials: "same-origin", redirect: "error" };
  const key = localStorage.getItem(place);
  if (key) init.headers["X-Console-Key"] = key;
  if (body !== undefined) {
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
    localStorage.removeItem(place);
    onLoggedOut();
  }
  throw new Refusal(error?.code ?? "unknown", error?.message ?? `The request was refused (${answer.status}).`);
}

async function ask(method, path, body, headers) {
  const answer = await request(method, path, body, headers);
  return answer.status === 204 ? undefined : answer.json();
}

export const get = (path) => ask("GET", path);
export const post = (path, body, headers) => ask("POST", path, body, headers);
export const remove = (path) => ask("DELETE", path);

export async function logIn(code) {
  const { page_key: key } = await post("/v1/console-session", { code });
  localStorage.setItem(place, key);
}

export async function logOut() {
  await remove("/v1/console-session");
  localStorage.removeItem(place);
  onLoggedOut();
}

// events calls heard for every event until the signal aborts, and state with
// "live" or "lost" as the connection comes and goes.
export async function events(signal, heard, state) {
  let seen;
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 15000)) {
    try {
      const headers = seen === undefined ? {} : { "Last-Event-ID": seen };
      const key = localStorage.getItem(place);
      const answer = await fetch("/v1/events", { headers: { ...headers, "X-Console-Key": key ?? "" }, cache: "no-store", signal });
      if (answer.status === 401) {
        localStorage.removeItem(place);
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
