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
  const meets = (node) => within(node, el) || label(node) || (types.includes('beforeinput') && editable(el) && within(el, node));
  // A closed root shows only its host to those outside; the listener in the
  // root itself sees what was really met.
  const roots = [];
  for (let root = rootOf(el); root instanceof ShadowRoot; root = rootOf(root.host)) if (!openRoot(root.host)) roots.push(root);
  const watch = (veiled) => (event) => {
    if (!event.isTrusted) return;
    const aim = event.composedPath()[0];
    const node = aim instanceof Node ? aim : null;
    if (node && (meets(node) || (veiled && roots.some((root) => root.host === node)))) {
      state.seen = true;
      return;
    }
    state.blocked = true;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  for (const type of types) {
    addEventListener(type, watch(true), { capture: true, signal: state.controller.signal });
    for (const root of roots) root.addEventListener(type, watch(root !== roots[0]), { capture: true, signal: state.controller.signal });
  }
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
  if (!point(el)) return refuse('invisible');
  const at = reachablePoint(el);
  if (!at) return refuse('covered');
  arm(el, ['mousedown', 'mouseup', 'click']);
  return { x: at.x, y: at.y };
};
