// The page on which the owner decides. Our own words come first; what the
// website or the agent wrote is quoted and says whose it is (VIEW-01 to VIEW-04).
import { get, post } from "./api.js";
import { announce, busy, chip, dialog, el, empty, head } from "./dom.js";
import { surroundings, thumbnail } from "./images.js";
import { approvalState, consequence, host, imageWords, left } from "./words.js";

export const title = "Approvals";

export async function waiting() {
  const { approvals } = await get("/v1/approvals?status=pending&limit=200");
  return approvals.reverse(); // oldest first: an arriving one never moves those above it
}

export function page(main, target) {
  const list = el("ol", { class: "list" });
  const none = empty("Nothing is waiting for you", "When an agent wants to do something on a website, it appears here.");
  main.replaceChildren(head("Approvals", "An agent may read on its own. Anything else happens only if you approve it here, once."), list, none);
  const cards = new Map();
  let first = true;

  async function refresh() {
    const open = await waiting();
    for (const a of open) {
      cards.get(a.id)?.illustrate();
      if (cards.has(a.id)) continue;
      const card = new Card(a, !first);
      cards.set(a.id, card);
      list.append(card.node);
    }
    const ids = new Set(open.map((a) => a.id));
    for (const [id, card] of cards) {
      if (!ids.has(id) && !card.decided) await card.look();
    }
    if (target && !cards.has(target)) await showOne(target);
    if (first && target) cards.get(target)?.reveal();
    none.hidden = cards.size > 0;
    first = false;
  }

  // An address that was handed out may name a question that has its answer.
  async function showOne(id) {
    const a = await get(`/v1/approvals/${encodeURIComponent(id)}`).catch(() => undefined);
    if (!a) return;
    const card = new Card(a, false);
    cards.set(id, card);
    list.prepend(card.node);
    if (a.status !== "pending") card.settle(a.status);
  }

  const timer = setInterval(() => { for (const card of cards.values()) card.tick(); }, 1000);
  return { refresh, leave: () => clearInterval(timer) };
}

class Card {
  constructor(approval, arrived) {
    this.approval = approval;
    this.decided = false;
    const v = approval.view;
    this.clock = el("span", { class: "soft small" });
    this.approve = v.described && el("button", { type: "button", class: "main", onclick: () => this.resolve(this.approve, "approve_once") }, "Approve once");
    this.deny = el("button", { type: "button", onclick: () => this.resolve(this.deny, "deny") }, "Deny");
    this.why = el("button", { type: "button", class: "quiet", onclick: () => this.denyWithReason() }, "Deny with a reason…");
    this.actions = el("div", { class: "row actions" }, this.approve, this.deny, this.why);
    this.node = el("li", { class: arrived ? "card fresh" : "card", "data-approval": approval.id },
      el("div", { class: "row between" }, el("span", { class: "soft small" }, "An agent asks to"), this.clock),
      el("h2", { tabindex: "-1" }, approval.summary),
      means(v), quoted(v), typed(v), this.actions);
    this.tick();
    this.looks = 0;
    if (approval.status === "pending") {
      this.illustrate();
      this.showImage();
    }
    if (arrived) announce(`An agent asks: ${approval.summary}`);
  }

  // illustrate puts the picture before the buttons, once there is one; it may
  // come a moment after the question.
  async illustrate() {
    if (this.pictured || this.looks++ >= 3) return;
    this.pictured = true;
    const picture = await surroundings(this.approval.id);
    if (picture) this.node.querySelector(".quote").after(picture);
    this.pictured = Boolean(picture);
  }

  async showImage() {
    const { image } = this.approval.view;
    const shown = image && await thumbnail(this.approval.session_id, image);
    if (shown) this.node.querySelector(".image")?.append(shown);
  }

  tick() {
    if (!this.decided) this.clock.textContent = `${left(this.approval.expires_at)} left`;
  }

  reveal() {
    this.node.classList.add("target");
    this.node.scrollIntoView({ block: "start" });
    this.node.querySelector("h2").focus({ preventScroll: true });
  }

  async resolve(button, decision, reason) {
    const answer = await busy(button, () => post(`/v1/approvals/${this.approval.id}/resolve`, { decision, reason }));
    if (answer) this.settle(answer.status, true);
    else await this.look();
  }

  denyWithReason() {
    dialog("Deny with a reason", (close) => {
      const input = el("textarea", { id: "reason", maxlength: 500, "aria-describedby": "reason-help", autofocus: true });
      const go = el("button", { class: "danger" }, "Deny");
      return el("form", {
        onsubmit: (event) => {
          event.preventDefault();
          close();
          this.resolve(this.deny, "deny", input.value.trim() || undefined);
        },
      }, el("div", { class: "field" }, el("label", { for: "reason" }, "Reason"), input, el("p", { class: "soft small", id: "reason-help" }, "It is kept with the approval, for you.")),
      el("div", { class: "row end" }, el("button", { type: "button", onclick: close }, "Back"), go));
    });
  }

  // look shows what became of a question that is not open any more.
  async look() {
    const a = await get(`/v1/approvals/${this.approval.id}`).catch(() => undefined);
    if (a && a.status !== "pending") this.settle(a.status);
  }

  // settle leaves the card where it is, so that nothing moves under the pointer.
  settle(status, here) {
    this.decided = true;
    this.clock.textContent = "";
    const outcome = el("p", { class: "outcome", tabindex: "-1" }, approvalState(status));
    this.node.classList.remove("fresh", "target");
    this.node.classList.add("decided");
    const focused = this.actions.contains(document.activeElement) || here;
    this.actions.replaceWith(outcome);
    if (focused) outcome.focus();
  }
}

// means says what the action may lead to, in our words.
function means(v) {
  const [words, tone] = consequence(v.consequence) ?? [];
  return words && el("div", { class: "row" }, chip(words, tone));
}

// quoted shows what the website says of the place, visibly as its words.
function quoted(v) {
  if (!v.described) {
    return el("p", { class: "error" }, "Chaperone can no longer describe the element, so this cannot be approved. Only the kind of action is known.");
  }
  if (v.kind === "navigate") {
    return el("figure", { class: "quote" }, el("figcaption", {}, "The agent would open"), el("p", {}, host(v.page_origin ?? ""), el("wbr"), v.page_path ?? ""));
  }
  const rows = [
    [roleLabel(v.element_role), v.element_name],
    ["Text", v.element_text],
    ["Inside", v.element_context],
    ["Choose", v.option],
    ["Page title", v.page_title],
  ].filter(([, value]) => value);
  return el("figure", { class: "quote" },
    el("figcaption", {}, `The website ${host(v.page_origin ?? "")} says`),
    rows.length ? el("dl", {}, rows.map(([k, value]) => [el("dt", {}, k), el("dd", {}, el("q", {}, value))])) : el("p", { class: "soft" }, "Nothing; the element has no name."));
}

const roleLabel = (role) => (role ? role[0].toUpperCase() + role.slice(1) : "Element");

// typed shows what the agent would send.
function typed(v) {
  if (v.text !== undefined || (v.redacted && v.option === undefined)) {
    return el("figure", { class: "quote" }, el("figcaption", {}, "The agent would type"),
      v.text !== undefined ? el("p", { class: "typed", tabindex: "0" }, v.text) : el("p", {}, "A value that looks like a secret. It is not shown."),
      v.text !== undefined && v.redacted && el("p", { class: "soft small" }, "Dots stand for what looks like a secret."),
      v.digest && el("p", { class: "soft small" }, `${[...v.text].length} characters; scroll to read all. Digest: `, el("span", { class: "mono" }, v.digest)));
  }
  if (v.image) {
    return el("figure", { class: "quote image" }, el("figcaption", {}, "The agent would upload your image"),
      el("p", {}, imageWords(v.image)), el("p", { class: "soft small" }, "The website may take it as soon as it is chosen."));
  }
  if (v.key) return el("p", {}, "Key: ", el("strong", {}, v.key));
  if (v.scroll_delta_y) return el("p", {}, `Distance: ${v.scroll_delta_y} pixels`);
  return undefined;
}
