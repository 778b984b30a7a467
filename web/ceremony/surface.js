// The sign-in page. It is given a link with a capability in the fragment,
// spends it on one connection, shows what comes and sends what the owner does.
// Nothing is written to storage, and typed text is never kept or logged.

import { Events } from "/authentication-events.js";

const byId = (id) => document.getElementById(id);
const canvas = byId("picture");
const capture = byId("capture");
const surface = canvas.getContext("2d", { alpha: false });

// The fragment goes from the address before anything else happens: not to the
// history, not to a screenshot, not to a shared address bar.
let capability = location.hash.slice(1);
history.replaceState(null, "", location.pathname);

const live = new Set(["live", "attention"]);
const over = {
  done: ["You are signed in", "The session is sealed. You can close this page; nothing else is needed here."],
  expired: ["The time is up", "Nothing was saved, and an earlier sign-in is as it was. Start again from the console when you are ready."],
  cancelled: ["Cancelled", "Nothing was saved, and an earlier sign-in is as it was. You can close this page."],
  failed: ["It did not work", "The browser stopped or the session could not be saved. An earlier sign-in is as it was. Start again from the console."],
  refused: ["Start over", "This link was used before, is incomplete, or has expired. Open a new one from the console."],
  lost: ["Connection lost", "This page could not connect again. If the sign-in is still open, cancel it in the console and start a new one."],
};
const says = {
  connecting: "Connecting…",
  again: "Connecting again…",
  live: "Live. Click a field in the picture, then type.",
  attention: "The site asks you to sign in. Click a field in the picture, then type.",
};
const wants = {
  text: "Not yet: nothing was typed into a sign-in form here, so there is nothing new to save.",
  challenge: "Not yet: the site still asks for a password, a code or a confirmation.",
  origin: "Not yet: the page is not on one of this profile's sites.",
  session: "Not yet: the site has not kept a session.",
  second: "Looks good. One more look in a moment…",
};
const calm = byId("wanting").textContent;

let socket = null;
let state = "connecting";
let ends = 0; // performance.now() at expiry
let tries = 0;
let asked = false; // the owner said "I am finished"

const send = (message) => {
  if (socket === null || socket.readyState !== WebSocket.OPEN) return false;
  socket.send(JSON.stringify(message));
  return true;
};

const events = new Events(send, () => {
  capture.value = "";
  notice("Something you typed or clicked did not arrive. Clear the field in the picture, then type again.");
});

function notice(text) {
  byId("notice").hidden = text === "";
  byId("notice").textContent = text;
}

function show(next) {
  state = next;
  const ended = over[state];
  const usable = live.has(state);
  document.body.dataset.state = state;
  byId("status-text").textContent = ended ? ended[0] : says[state];
  byId("curtain").hidden = usable;
  if (ended) {
    byId("curtain-title").textContent = ended[0];
    byId("curtain-text").textContent = ended[1];
    byId("left").hidden = true;
    document.title = `${ended[0]} · Chaperone`;
    notice("");
    surface.clearRect(0, 0, canvas.width, canvas.height);
  } else if (!usable) {
    byId("curtain-title").textContent = says[state];
    byId("curtain-text").textContent = "A browser of your own is being connected to this page.";
  }
  for (const control of document.querySelectorAll("button, textarea")) control.disabled = !usable;
  if (usable) events.open();
  else events.close();
}

function connect() {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const opened = new WebSocket(`${scheme}//${location.host}${location.pathname}/live`);
  opened.binaryType = "arraybuffer";
  socket = opened;
  opened.onopen = () => {
    opened.send(JSON.stringify({ capability }));
    capability = "";
  };
  opened.onmessage = ({ data }) => (typeof data === "string" ? told(JSON.parse(data)) : picture(data));
  opened.onclose = () => {
    if (socket === opened) again();
  };
}

// A dropped connection gets the capability that the last one was given.
function again() {
  socket = null;
  if (over[state]) return;
  if (capability === "" || tries >= 8) {
    show("lost");
    return;
  }
  show("again");
  tries++;
  setTimeout(connect, Math.min(250 * 2 ** tries, 5000));
}

function told(message) {
  switch (message.type) {
    case "resume":
      capability = message.capability;
      break;
    case "ack":
      if (message.ok === true) notice("");
      events.acknowledged(message.seq, message.ok === true);
      break;
    case "state":
      told.state(message);
      break;
  }
}

told.state = (message) => {
  tries = 0;
  ends = performance.now() + (message.expires_in_ms ?? 0);
  byId("origin").textContent = message.origin ?? "address not known";
  const wanting = wants[message.wanting];
  byId("wanting").textContent = asked && wanting ? wanting : message.wanting === "second" ? wants.second : calm;
  if (message.state !== state) show(message.state);
};

// Only the newest picture is drawn; one that arrives while another is being
// decoded replaces the one that waits.
let next = null;
let drawing = false;

async function picture(data) {
  next = data;
  if (drawing) return;
  drawing = true;
  while (next !== null) {
    const header = new DataView(next);
    const width = header.getUint16(0);
    const height = header.getUint16(2);
    const jpeg = new Blob([new Uint8Array(next, 4)], { type: "image/jpeg" });
    next = null;
    try {
      const bitmap = await createImageBitmap(jpeg);
      if (!over[state]) {
        if (canvas.width !== width || canvas.height !== height) {
          canvas.width = width;
          canvas.height = height;
        }
        surface.drawImage(bitmap, 0, 0, width, height);
        if (byId("zoom").dataset.set === undefined) zoom(narrow.matches);
      }
      bitmap.close();
    } catch {
      // Not a picture: the next one will be.
    }
  }
  drawing = false;
}

// On a narrow window the whole picture would be too small to read: it begins
// larger, and the owner moves it under the frame.
const narrow = matchMedia("(max-width: 34rem)");

function zoom(larger) {
  const view = byId("view");
  byId("zoom").dataset.set = "";
  byId("zoom").setAttribute("aria-pressed", String(larger));
  byId("stage").dataset.zoom = String(larger);
  view.scrollTo((view.scrollWidth - view.clientWidth) / 2, 0);
}
byId("zoom").addEventListener("click", () => zoom(byId("stage").dataset.zoom !== "true"));

// Clicks are in the site's own pixels, whatever size the picture has here.
canvas.addEventListener("click", (event) => {
  if (!live.has(state)) return;
  const box = canvas.getBoundingClientRect();
  const x = Math.round(((event.clientX - box.left) / box.width) * canvas.width);
  const y = Math.round(((event.clientY - box.top) / box.height) * canvas.height);
  ripple(event.clientX, event.clientY);
  events.click(Math.max(0, Math.min(x, canvas.width - 1)), Math.max(0, Math.min(y, canvas.height - 1)));
  capture.value = "";
  capture.focus({ preventScroll: true });
});

function ripple(x, y) {
  const box = byId("stage").getBoundingClientRect();
  const mark = document.createElement("span");
  mark.className = "ripple";
  mark.style.left = `${x - box.left}px`;
  mark.style.top = `${y - box.top}px`;
  mark.addEventListener("animationend", () => mark.remove());
  byId("stage").append(mark);
}

// Typing. The field only catches: each character, paste or finished
// composition is sent and the field is empty again.
const named = new Set(["Enter", "Escape", "Tab", "Backspace", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]);
let composing = false;

capture.addEventListener("keydown", (event) => {
  if (composing || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || !named.has(event.key)) return;
  if (event.key === "Tab" && event.shiftKey) return; // the way out for keyboards
  event.preventDefault();
  events.key(event.key);
});
capture.addEventListener("compositionstart", () => { composing = true; });
capture.addEventListener("compositionend", (event) => {
  composing = false;
  take(event.data);
});
capture.addEventListener("beforeinput", (event) => {
  if (event.inputType.startsWith("deleteContent")) { // on-screen keyboards name no key
    event.preventDefault();
    events.key("Backspace");
  } else if (event.inputType === "insertLineBreak" || event.inputType === "insertParagraph") {
    event.preventDefault();
    events.key("Enter");
  }
});
capture.addEventListener("input", (event) => {
  if (!composing && !event.isComposing) take(capture.value);
});
capture.addEventListener("paste", (event) => {
  event.preventDefault();
  take(event.clipboardData.getData("text/plain"));
});
for (const refused of ["drop", "dragover", "copy", "cut"]) {
  capture.addEventListener(refused, (event) => event.preventDefault());
}

function take(text) {
  capture.value = "";
  if (text) events.text(text);
}

for (const button of document.querySelectorAll("[data-key]")) {
  button.addEventListener("pointerdown", (event) => event.preventDefault()); // keeps the on-screen keyboard up
  button.addEventListener("click", () => events.key(button.dataset.key));
}
byId("keyboard").addEventListener("click", () => capture.focus());
canvas.addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    capture.focus();
  }
});

byId("finished").addEventListener("click", () => {
  asked = true;
  byId("wanting").textContent = "Looking at the page…";
  send({ finished: true });
});
byId("cancel").addEventListener("click", () => send({ cancel: true }));

setInterval(() => {
  if (!live.has(state)) return;
  const seconds = Math.max(0, Math.ceil((ends - performance.now()) / 1000));
  const left = byId("left");
  left.hidden = false;
  left.dataset.short = String(seconds <= 60);
  left.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} left`;
}, 500);

if (capability.length < 32) {
  capability = "";
  show("refused");
} else {
  connect();
}
