// Reading the DOM without believing the page. An isolated world has its own
// prototypes, but forms and documents still let a page shadow a property with
// a named child (<input name="tagName">), so properties are read through the
// prototype's own accessors.
const asFunction = Function.prototype.call.bind.bind(Function.prototype.call);
const accessor = (proto, name) => asFunction(Object.getOwnPropertyDescriptor(proto, name).get);
const method = (proto, name) => asFunction(proto[name]);

const nodeType = accessor(Node.prototype, 'nodeType');
const parentNode = accessor(Node.prototype, 'parentNode');
const firstChild = accessor(Node.prototype, 'firstChild');
const nextSibling = accessor(Node.prototype, 'nextSibling');
const isConnected = accessor(Node.prototype, 'isConnected');
const ownerDocument = accessor(Node.prototype, 'ownerDocument');
const textOf = accessor(CharacterData.prototype, 'data');
const rootOf = method(Node.prototype, 'getRootNode');
const localName = accessor(Element.prototype, 'localName');
const namespace = accessor(Element.prototype, 'namespaceURI');
const openRoot = accessor(Element.prototype, 'shadowRoot');
const assignedSlot = accessor(Element.prototype, 'assignedSlot');
const textSlot = accessor(Text.prototype, 'assignedSlot');
const assignedNodes = method(HTMLSlotElement.prototype, 'assignedNodes');
const attribute = method(Element.prototype, 'getAttribute');
const hasAttribute = method(Element.prototype, 'hasAttribute');
const matches = method(Element.prototype, 'matches');
const box = method(Element.prototype, 'getBoundingClientRect');
const boxes = method(Element.prototype, 'getClientRects');
const rendered = method(Element.prototype, 'checkVisibility');
const contentEditable = accessor(HTMLElement.prototype, 'isContentEditable');
const formLabels = {
  button: accessor(HTMLButtonElement.prototype, 'labels'),
  input: accessor(HTMLInputElement.prototype, 'labels'),
  select: accessor(HTMLSelectElement.prototype, 'labels'),
  textarea: accessor(HTMLTextAreaElement.prototype, 'labels'),
};
const labelControl = accessor(HTMLLabelElement.prototype, 'control');

const firstElements = [Element, Document, DocumentFragment].map((of) => accessor(of.prototype, 'firstElementChild'));
const nextElement = accessor(Element.prototype, 'nextElementSibling');
const querySelectors = [Element, Document, DocumentFragment].map((of) => method(of.prototype, 'querySelectorAll'));

// Closed shadow roots that the browser has opened for this world, by host.
const closedRoots = new WeakMap();
const shadowRoot = (el) => openRoot(el) ?? closedRoots.get(el) ?? null;

const isElement = (node) => nodeType(node) === 1;
const isText = (node) => nodeType(node) === 3;
const isHTML = (el) => namespace(el) === 'http://www.w3.org/1999/xhtml';
const tag = (el) => (isHTML(el) ? localName(el) : '');
const attr = (el, name) => attribute(el, name) ?? '';
const inputType = (el) => attr(el, 'type').trim().toLowerCase() || 'text';
const styleOf = (el) => getComputedStyle(el);
const editable = (el) => el instanceof HTMLElement && contentEditable(el);

// children yields the children of a node in the flat tree: those of an open
// shadow root instead of the host's own, and what a slot really shows.
function* children(node) {
  if (isElement(node)) {
    const shadow = shadowRoot(node);
    if (shadow) {
      node = shadow;
    } else if (tag(node) === 'slot') {
      const assigned = assignedNodes(node);
      if (assigned.length > 0) {
        yield* assigned;
        return;
      }
    }
  }
  for (let child = firstChild(node); child; child = nextSibling(child)) yield child;
}

const sort = (node) => ({ 9: 1, 11: 2 }[nodeType(node)] ?? 0);
const firstElement = (node) => firstElements[sort(node)](node);
const selectAll = (node, selector) => querySelectors[sort(node)](node, selector);

// parent is the flat-tree parent of a node: its slot, its host or its parent.
const parent = (node) => {
  const slot = isElement(node) ? assignedSlot(node) : isText(node) ? textSlot(node) : null;
  if (slot) return slot;
  const up = parentNode(node);
  if (up instanceof ShadowRoot) return up.host;
  const closed = up ? closedRoots.get(up) : null;
  return (closed && slotIn(closed, node)) || up;
};
// slotIn is the slot of a closed root, which it hides, that shows a node.
const slotIn = (root, node) => {
  for (const slot of selectAll(root, 'slot')) if (assignedNodes(slot).includes(node)) return slot;
  return null;
};

// ancestors yields an element and the elements around it, at most 256.
function* ancestors(el) {
  for (let up = el, hops = 0; up && isElement(up) && hops < 256; up = parent(up), hops++) yield up;
}

const within = (node, outer) => {
  for (let up = node; up; up = parent(up)) if (up === outer) return true;
  return false;
};

// climb makes a question about an element or anything around it, which is
// answered once for each of them.
const climb = (test) => {
  const known = new Map();
  return (el) => {
    const path = [];
    let answer = null;
    for (const up of ancestors(el)) {
      if (known.has(up)) {
        answer = known.get(up);
        break;
      }
      path.push(up);
      answer = test(up);
      if (answer) break;
    }
    for (const up of path) known.set(up, answer);
    return answer;
  };
};

const collapse = (text) => text.replace(/[\s\u00a0]+/gu, ' ').trim();

// clip cuts a text to at most max characters without halving one.
const clip = (text, max) => {
  if (text.length <= max) return text.toWellFormed();
  const chars = Array.from(text.slice(0, 2 * max)).slice(0, max); // a character has at most two units
  return chars.join('').toWellFormed();
};
