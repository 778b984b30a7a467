// Making and changing the page. Everything that is shown goes through text
// nodes: no function here takes markup.

export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false));
  return node;
}

// A click goes to what is under both the press and the release, so nothing is
// replaced between the two.
let pressed = false;
const postponed = new Map(); // children by parent

addEventListener("pointerdown", () => { pressed = true; }, true);
for (const end of ["pointerup", "pointercancel"]) {
  addEventListener(end, () => setTimeout(() => {
    pressed = false;
    for (const [parent, children] of postponed) replace(parent, ...children);
    postponed.clear();
  }), true);
}

// replace changes what a part of the page shows and keeps the focus on the
// control with the same data-key, if it is still there.
export function replace(parent, ...children) {
  if (pressed) {
    postponed.set(parent, children);
    return;
  }
  const key = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  parent.replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (key) parent.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

let noticeTimer;

export function notice(text) {
  const place = document.getElementById("notice");
  place.replaceChildren(el("p", {}, text));
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => place.replaceChildren(), 7000);
}

// announce is heard by screen readers and seen by nobody.
export function announce(text) {
  const place = document.getElementById("announce");
  place.textContent = "";
  requestAnimationFrame(() => { place.textContent = text; });
}

// busy keeps a control from being used twice while work runs, and shows a
// failure in words. It returns undefined when the work failed.
export async function busy(button, work) {
  button.disabled = true;
  try {
    return await work();
  } catch (err) {
    notice(err.message);
    return undefined;
  } finally {
    button.disabled = false;
  }
}

// dialog shows a modal dialog; build gets its close function, which a page in
// the background can call, too, and a function that registers what to do after
// closing. It returns the content. The focus returns to where it was.
export function dialog(title, build) {
  const before = document.activeElement;
  const heading = el("h2", { id: "dialog-title" }, title);
  const box = el("dialog", { "aria-labelledby": "dialog-title" });
  let after = () => {};
  const close = () => {
    if (!box.isConnected) return;
    box.remove();
    if (before?.isConnected) before.focus();
    else document.querySelector(`[data-key="${CSS.escape(before?.dataset?.key ?? "")}"]`)?.focus();
    after();
  };
  box.addEventListener("close", close); // by the Escape key
  box.append(el("div", { class: "body" }, heading, build(close, (f) => { after = f; })));
  document.body.append(box);
  box.showModal();
}

// confirm asks before something that cannot be taken back.
export function confirm(title, text, action, work) {
  dialog(title, (close) => {
    const go = el("button", { type: "button", class: "danger", onclick: () => busy(go, async () => { await work(); close(); }) }, action);
    return el("div", { class: "body" }, el("p", { class: "soft" }, text),
      el("div", { class: "row end" }, el("button", { type: "button", onclick: close, autofocus: true }, "Keep as it is"), go));
  });
}

export function chip(text, tone) {
  return el("span", { class: `chip ${tone ?? ""}` }, text);
}

export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(([, v]) => v).map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v))));
}

export function empty(title, text) {
  return el("div", { class: "empty" }, el("strong", {}, title), el("span", {}, text));
}

export function head(title, text, ...actions) {
  return el("div", { class: "head" }, el("h1", {}, title), actions, text && el("p", {}, text));
}
