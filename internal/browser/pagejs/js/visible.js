// Visibility (OBS-03): an element with display:contents counts when a child
// element or a text of it has a box; any other must be rendered, not
// visibility:hidden, and have a box of its own.
const hasBox = (rect) => rect.width > 0 && rect.height > 0;

const probe = new Range();
const textHasBox = (text) => {
  probe.selectNodeContents(text);
  return hasBox(probe.getBoundingClientRect());
};

const shownStyle = { visibilityProperty: true };
const visible = (el) => {
  if (rendered(el, shownStyle)) return hasBox(boxOf(el));
  if (styleOf(el).display !== 'contents') return false;
  for (const child of children(el)) {
    if (isElement(child) ? visible(child) : isText(child) && textHasBox(child)) return true;
  }
  return false;
};

const dialogRoles = ['dialog', 'alertdialog'];
const isDialog = (el) =>
  (tag(el) === 'dialog' && hasAttribute(el, 'open')) || dialogRoles.includes(attr(el, 'role').trim().toLowerCase());

// modals are the dialogs that make everything else inert.
const modals = () => Array.from(selectAll(document, 'dialog:modal'));

// inertness says what keeps the user from everything in the element: "inert",
// or "behind_dialog" while a modal dialog is open elsewhere.
const inertness = (open) => {
  const held = climb((up) => (open.includes(up) ? 'modal' : hasAttribute(up, 'inert') && isHTML(up) ? 'inert' : ''));
  return (el) => {
    const by = held(el);
    if (by === 'inert') return 'inert';
    return open.length && by !== 'modal' ? 'behind_dialog' : '';
  };
};

const disabledAround = () => climb((up) => truthy(up, 'aria-disabled'));
const disabled = (el, around = pass?.disabled ?? disabledAround()) => matches(el, ':disabled') || Boolean(around(el));
