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

const arm = (el, types) => {
  disarm();
  const state = { seen: false, blocked: false, controller: new AbortController() };
  const label = (node) => {
    for (const up of ancestors(node)) if (tag(up) === 'label') return labelControl(up) === el;
    return false;
  };
  const watch = (event) => {
    if (!event.isTrusted) return;
    const aim = event.composedPath()[0];
    const node = aim instanceof Node ? aim : null;
    if (node && (within(node, el) || within(el, node) && types.includes('beforeinput') && editable(el) || label(node))) {
      state.seen = true;
      return;
    }
    state.blocked = true;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  for (const type of types) addEventListener(type, watch, { capture: true, signal: state.controller.signal });
  armed = state;
};

// aim looks once more at what is under the mouse, now that it hovers there, and
// arms the guard for the click that is sent next.
const aim = ({ revision, index }) => {
  const found = live(revision, index);
  if (!found.el) return found;
  const { el } = found;
  const unusable = usable(el);
  if (unusable) return refuse(unusable);
  const at = point(el);
  if (!at) return refuse('invisible');
  const hit = hitAt(at.x, at.y);
  if (!hit || !reaches(hit, el)) return refuse('covered');
  arm(el, ['mousedown', 'mouseup', 'click']);
  return { x: at.x, y: at.y };
};
