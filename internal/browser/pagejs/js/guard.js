// The guard stands between the check and the input: an event of the kind that
// is about to be sent, aimed at anything but the element, is stopped with its
// default action, and the act is then of unknown outcome (CLK-03). Page
// scripts cannot make trusted events, so they can neither pass nor trip it.
let armed = null;

const disarm = () => {
  const verdict = { seen: armed?.seen ?? false, blocked: armed?.blocked ?? false };
  armed?.controller.abort();
  armed = null;
  return verdict;
};

// passesOn is the control that a click on the element goes on to: that of the
// label that it is, or is in (GUARD-01).
const passesOn = (el) => {
  for (const up of ancestors(el)) if (tag(up) === 'label') return labelControl(up);
  return null;
};

// coveredBy tells which clicks the element itself sets off, as it is now: on it,
// in and around it, on controls that it labels, on the default button of its
// form (GUARD-01).
const coveredBy = (el) => {
  const work = effort();
  const outer = enclosing(el, work);
  const others = new Set();
  for (const label of [...outer.labels, ...selectAll(el, 'label')]) others.add(labelControl(label));
  for (const form of outer.forms) others.add(defaultButton(form, work).submit);
  return (node) => within(node, el) || within(el, node) || others.has(node);
};

// arm lets events of the types through to the element only, and none once it
// does not suit the act any more. act has kind and key, or nothing for a frame.
const arm = (el, types, act = {}) => {
  disarm();
  const state = { seen: false, blocked: false, controller: new AbortController() };
  const { signal } = state.controller;
  const keys = types.includes('keydown');
  const onto = passesOn(el); // as it was when all else was checked
  const covered = keys && types.includes('click') ? coveredBy(el) : null;
  // A click is seen when it comes; what leads up to it may lead nowhere. A list
  // of choices opens before.
  const last = keys || tag(el) === 'select' ? null : 'click';
  const meets = (node, type) => (covered && type === 'click' ? covered(node) : keys ? node === el || (editable(el) && within(el, node)) : reaches(node, el) || node === onto);
  let text = null; // what is about to come into the element
  const judge = (event) => {
    if (!event.isTrusted) return;
    const aim = event.composedPath()[0];
    const node = aim instanceof Element ? aim : null;
    // A closed root shows only its host to those outside; a listener in the
    // root itself sees what was really met.
    const inner = node && closedRoots.get(node);
    if (inner) inner.addEventListener(event.type, judge, { capture: true, once: true, signal });
    if (node && !suits(el, act.kind, act.key)) {
      if (meets(node, event.type)) {
        if (!last || event.type === last) state.seen = true;
        text = event.type === 'beforeinput' ? event : null;
        return;
      }
      if (inner && node !== el && within(el, node)) return;
    }
    if (event.type !== 'keyup') state.blocked = true; // where a key is let go says nothing of where it went
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  for (const type of types) addEventListener(type, judge, { capture: true, signal });
  // Text goes to where the focus is when the page has been asked, without asking
  // again there.
  if (keys) {
    addEventListener('blur', (event) => {
      if (!event.isTrusted || !text?.eventPhase) return;
      state.blocked = true;
      text.preventDefault();
    }, { capture: true, signal });
  }
  armed = state;
};

// aim looks once more at what is under the mouse, now that it hovers there, and
// arms the guard for the click that is sent next.
const aim = (args) => {
  const found = fit(args);
  if (!found.el) return found;
  const { el } = found;
  if (!point(el)) return refuse('invisible');
  const at = reachablePoint(el);
  if (!at) return refuse('covered');
  // Which frame gets the mouse is the browser's decision, and a scroll ago it
  // may still decide otherwise.
  if (self !== top && !matches(at.hit, ':hover')) return { reason: 'moving', passing: true };
  arm(el, ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'], args);
  return { x: at.x, y: at.y, hosts: possibleHosts(at.hit, el) };
};
