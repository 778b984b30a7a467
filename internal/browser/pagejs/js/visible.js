// Visibility (OBS-03): an element with display:contents counts when a child
// element or a text of it has a box; any other must be rendered, not
// visibility:hidden, and have a box of its own.
const hasBox = (rect) => rect.width > 0 && rect.height > 0;

const textHasBox = (text) => {
  const range = new Range();
  range.selectNodeContents(text);
  return hasBox(range.getBoundingClientRect());
};

const visible = (el, style = styleOf(el)) => {
  if (style.display === 'contents') {
    for (const child of children(el)) {
      if (isElement(child) ? visible(child) : isText(child) && textHasBox(child)) return true;
    }
    return false;
  }
  return rendered(el) && style.visibility === 'visible' && hasBox(box(el));
};

// openDialog is the dialog that is on top for the user: the last visible one.
const dialogRoles = ['dialog', 'alertdialog'];
const isDialog = (el) =>
  (tag(el) === 'dialog' && hasAttribute(el, 'open')) || dialogRoles.includes(attr(el, 'role').trim().toLowerCase());

const openDialog = () => {
  let found = null;
  let visited = 0;
  const look = (node) => {
    for (const child of children(node)) {
      if (!isElement(child)) continue;
      if (++visited > 8192) return;
      if (isDialog(child) && visible(child)) found = child;
      look(child);
    }
  };
  look(document);
  return found;
};

// inert: nothing the user does can reach the element, because it or something
// around it is inert or a modal dialog is open elsewhere.
const modals = () => {
  const open = [];
  for (const el of document.getElementsByTagName('dialog')) if (matches(el, ':modal')) open.push(el);
  return open;
};
const inert = (el, open) => {
  let inside = open.length === 0;
  for (const up of ancestors(el)) {
    if (hasAttribute(up, 'inert') && isHTML(up)) return true;
    if (open.includes(up)) {
      inside = true;
      break; // a modal dialog escapes the inertness of what is around it
    }
  }
  return !inside;
};

const disabled = (el) => {
  if (matches(el, ':disabled')) return true;
  for (const up of ancestors(el)) {
    if (attr(up, 'aria-disabled').trim().toLowerCase() === 'true') return true;
  }
  return false;
};
