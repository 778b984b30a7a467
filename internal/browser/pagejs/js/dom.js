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
const positionOf = method(Node.prototype, 'compareDocumentPosition');
const isConnected = accessor(Node.prototype, 'isConnected');
const ownerDocument = accessor(Node.prototype, 'ownerDocument');
const textOf = accessor(CharacterData.prototype, 'data');
const comesAfter = (node, other) => (positionOf(other, node) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
const contains = method(Node.prototype, 'contains');
const rootOf = method(Node.prototype, 'getRootNode');
const localName = accessor(Element.prototype, 'localName');
const namespace = accessor(Element.prototype, 'namespaceURI');
const openRoot = accessor(Element.prototype, 'shadowRoot');
const assignedSlot = accessor(Element.prototype, 'assignedSlot');
const textSlot = accessor(Text.prototype, 'assignedSlot');
const assignedNodes = method(HTMLSlotElement.prototype, 'assignedNodes');
const attribute = method(Element.prototype, 'getAttribute');
const hasAttribute = method(Element.prototype, 'hasAttribute');
const hasAttributes = method(Element.prototype, 'hasAttributes');
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

const firstElementIn = accessor(Element.prototype, 'firstElementChild');
const firstElementOf = [Document, DocumentFragment].map((of) => accessor(of.prototype, 'firstElementChild'));
const nextElement = accessor(Element.prototype, 'nextElementSibling');
const selectIn = method(Element.prototype, 'querySelectorAll');
const selectOf = [Document, DocumentFragment].map((of) => method(of.prototype, 'querySelectorAll'));

// Closed shadow roots that the browser has opened for this world, by host.
const closedRoots = new WeakMap();
const shadowRoot = (el) => openRoot(el) ?? closedRoots.get(el) ?? null;

const isElement = (node) => nodeType(node) === 1;
const isText = (node) => nodeType(node) === 3;
const isHTML = (el) => namespace(el) === 'http://www.w3.org/1999/xhtml';
const tag = (el) => (isHTML(el) ? localName(el) : '');
const attr = (el, name) => attribute(el, name) ?? '';
const inputType = (el) => attr(el, 'type').trim().toLowerCase() || 'text';
const editable = (el) => el instanceof HTMLElement && contentEditable(el);

// Below steps through the children of a node in the flat tree: those of an
// open shadow root instead of the host's own, and what a slot really shows.
// With light, it keeps to the children in the node's own tree.
class Below {
  #list = null;
  #at = 0;
  #child = null;

  constructor(node, light = false) {
    if (!light && isElement(node)) {
      const shadow = shadowRoot(node);
      if (shadow) {
        node = shadow;
      } else if (localName(node) === 'slot' && isHTML(node)) {
        const assigned = assignedNodes(node);
        if (assigned.length > 0) {
          this.#list = assigned;
          return;
        }
      }
    }
    this.#child = firstChild(node);
  }

  // next is the next child, or nothing.
  next() {
    if (this.#list) return this.#list[this.#at++];
    const child = this.#child;
    if (child) this.#child = nextSibling(child);
    return child;
  }
}

// children yields the children of a node in the flat tree.
function* children(node) {
  const below = new Below(node);
  for (let child = below.next(); child; child = below.next()) yield child;
}

const firstElement = (node) => (isElement(node) ? firstElementIn : firstElementOf[nodeType(node) === 9 ? 0 : 1])(node);
const selectAll = (node, selector) => (isElement(node) ? selectIn : selectOf[nodeType(node) === 9 ? 0 : 1])(node, selector);

// parent is the flat-tree parent of a node: its slot, its host or its parent.
const parent = (node) => {
  const slot = isElement(node) ? assignedSlot(node) : isText(node) ? textSlot(node) : null;
  if (slot) return slot;
  const up = parentNode(node);
  if (up && nodeType(up) === 11 && up instanceof ShadowRoot) return up.host;
  const closed = up ? closedRoots.get(up) : null;
  return (closed && slotIn(closed, node)) || up;
};
// slotIn is the slot of a closed root, which it hides, that shows a node.
const slotIn = (root, node) => {
  for (const slot of selectAll(root, 'slot')) if (assignedNodes(slot).includes(node)) return slot;
  return null;
};

// ancestors yields an element and the elements around it, at most MAX_HOPS.
const MAX_HOPS = 256;
function* ancestors(el) {
  for (let up = el, hops = 0; up && isElement(up) && hops < MAX_HOPS; up = parent(up), hops++) yield up;
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
    for (let up = el; up && isElement(up) && path.length < MAX_HOPS; up = parent(up)) {
      const said = known.get(up);
      if (said !== undefined) {
        answer = said;
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
