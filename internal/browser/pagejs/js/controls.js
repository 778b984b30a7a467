// Candidates and windows (OBS-02 to OBS-04, EXP-05 to EXP-08): what takes a
// click or the focus, in the order of the flat tree with the open dialog
// first, exactly one for every surface that takes clicks.
const MAX_WINDOW = 4096;
const MAX_POSITION = 65536;
const MAX_ELEMENTS = 256;
const MAX_FRAMES = 64;
const MAX_DIALOG_SCAN = 8192;
const MAX_NODES = 200000;
const MAX_DEPTH = 1024;
const MAX_SUSPECTS = 256;

// isListed: the candidates of the specification.
const listedTags = new Set(['a', 'button', 'input', 'select', 'textarea']);
const isListed = (el) => listedTags.has(tag(el)) || hasAttribute(el, 'role') || (localName(el) === 'a' && namespace(el) === SVG);

const handlers = ['onclick', 'onmousedown', 'onmouseup', 'onpointerdown', 'onpointerup', 'ontouchstart', 'ontouchend'];
const handled = handlers.map((name) => `[${name}]`).join();
const takingMarks = `[role],[tabindex],[contenteditable],${handled}`;
const takingSelector = `a,button,input,select,textarea,summary,label,area,audio,video,${takingMarks}`;

// Everything that is not noted has nothing in its markup that could make it a
// candidate, and is not asked.
const notedTags = new Set([...listedTags, 'summary', 'label', 'area', 'audio', 'video', 'iframe', 'frame', 'object', 'embed', 'canvas', 'img']);
const isNoted = (el, name) => notedTags.has(name) || (hasAttributes(el) && matches(el, takingMarks));
const passedBy = new Set(['script', 'style', 'template', 'noscript']);

// Roles that name a part of the page and not a control.
const structureRoles = new Set(['alert', 'alertdialog', 'application', 'article', 'banner', 'blockquote', 'caption', 'cell', 'code', 'columnheader',
  'comment', 'complementary', 'contentinfo', 'definition', 'deletion', 'dialog', 'directory', 'document', 'emphasis', 'feed', 'figure',
  'form', 'generic', 'grid', 'group', 'heading', 'image', 'img', 'insertion', 'list', 'listbox', 'listitem', 'log', 'main', 'mark', 'marquee',
  'math', 'menu', 'menubar', 'meter', 'navigation', 'none', 'note', 'paragraph', 'presentation', 'progressbar', 'radiogroup', 'region',
  'row', 'rowgroup', 'rowheader', 'search', 'separator', 'status', 'strong', 'subscript', 'suggestion', 'superscript', 'table', 'tablist',
  'tabpanel', 'term', 'time', 'timer', 'toolbar', 'tooltip', 'tree', 'treegrid']);
const ariaRoles = new Set([...structureRoles, ...contentRoles, ...entryRoles, 'slider', 'scrollbar']);

// A click on something in one of these is a click on it.
const leafRoles = new Set(['button', 'link', 'checkbox', 'radio', 'switch', 'tab', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'option']);
const isLeaf = (el) => ['button', 'select', 'textarea', 'summary'].includes(tag(el)) || (tag(el) === 'a' && hasAttribute(el, 'href')) ||
  (hasAttribute(el, 'role') && leafRoles.has(firstRole(el))) || (tag(el) === 'label' && Boolean(labelControl(el)));

// Surfaces are elements outside the specification's selector that take clicks,
// scrollers those that are here only to be scrolled.
const surfaces = new WeakSet();
const scrollers = new WeakSet();
const isSurface = (el) => surfaces.has(el);

const tabbable = (el) => Number.parseInt(attr(el, 'tabindex'), 10) >= 0;
const isEditor = (el) => hasAttribute(el, 'contenteditable') && editable(el) && !(parent(el) && isElement(parent(el)) && editable(parent(el)));
const isPictureOfForm = (el) => {
  if (collapse(attr(el, 'alt')) || boxOf(el).width < 24 || boxOf(el).height < 24) return false;
  for (const up of ancestors(el)) if (tag(up) === 'form' || isDialog(up)) return true;
  return false;
};

// takesInput: beyond the specification, by what it is and not by its looks.
const takesInput = (el) => {
  switch (tag(el)) {
    case 'summary': return true;
    case 'label': return Boolean(labelControl(el)) && !visible(labelControl(el));
    case 'area': return hasAttribute(el, 'href');
    case 'audio': case 'video': return hasAttribute(el, 'controls');
    case 'img': return isPictureOfForm(el);
  }
  return tabbable(el) || isEditor(el) || matches(el, handled);
};
const isControl = (el) => (hasAttribute(el, 'role') && !listedTags.has(tag(el)) && structureRoles.has(firstRole(el)) ? takesInput(el) : isListed(el) || takesInput(el));

const isFrame = (el) => {
  const name = tag(el);
  return name === 'iframe' || name === 'frame' || ((name === 'object' || name === 'embed') && /html|svg/u.test(attr(el, 'type')));
};

// wraps: everything that can be seen of the element belongs to controls inside
// it, so its own click surface is theirs.
const wraps = (el) => {
  if (!shadowRoot(el) && selectAll(el, takingSelector).length === 0) return false;
  let nodes = 0;
  let controls = 0;
  const whole = visit(el, (node) => {
    if (++nodes > 256) return STOP;
    if (isText(node)) return /\S/u.test(textOf(node)) && textHasBox(node) ? STOP : false;
    if (!isElement(node) || noText.has(tag(node)) && !box(node).width) return false;
    if (node !== el) {
      if (!rendered(node) && styleOf(node).display !== 'contents') return false;
      if (isListed(node) || takesInput(node)) {
        controls++;
        return false;
      }
    }
    return ['img', 'canvas', 'video'].includes(tag(node)) || localName(node) === 'svg' ? STOP : { node };
  });
  return whole && controls > 0;
};

const scrollHeight = accessor(Element.prototype, 'scrollHeight');
const clientHeight = accessor(Element.prototype, 'clientHeight');
const clips = /auto|scroll|overlay/u;
const overflows = (el) => scrollHeight(el) > clientHeight(el) + 1 && clientHeight(el) > 0;
const unscrolled = new Set(['html', 'body', 'a', 'b', 'i', 'em', 'strong', 'span', 'small', 'code', 'br', 'hr', 'img', 'label', 'option', 'p', 'td', 'th', 'tr']);
const isScroller = (el, style) => clips.test(style.overflowY) && overflows(el);

// What an element is in an outline, and what those inside it are to know.
const CONTROL = 1;
const FRAME = 2;
const HIDDEN = 1; // not shown
const LEAF = 2; // a click on it is a click on what is around it
const POINTED = 4; // around it, the mouse is a pointer already
const JUDGED = 8;

// Outline is a part of the page in the order of the flat tree, elements by
// their place in it. What its markup says of an element is known at once; what
// only its looks say is found when it matters, because most of a big page is
// behind the window that is shown.
class Outline {
  visited = 0;
  cut = false;
  dialog = null; // from and to are places, controls is how many stand before it
  unread = new Set();
  suspects = [];
  #els = [];
  #ups = []; // place of what is around it, or -1
  #ends = []; // place behind the last one inside it
  #kinds = [];
  #noted = [];
  #inner = []; // HIDDEN to JUDGED
  #found = 0; // by markup
  #need;
  #specified;

  // need candidates are enough, whatever comes behind. specified keeps to the
  // specification's selector.
  constructor(root, need, specified) {
    this.#need = need;
    this.#specified = specified;
    if (isElement(root)) this.#walk(root, 0, -1);
    else for (let child = firstElement(root); child; child = nextElement(child)) this.#walk(child, 1, -1);
  }

  get length() { return this.#els.length; }

  element(at) { return this.#els[at]; }

  #enough() {
    if (this.visited <= MAX_DIALOG_SCAN) return false;
    return this.#found - (this.dialog && this.dialog.to < 0 ? this.dialog.controls : 0) >= this.#need;
  }

  #walk(el, depth, up) {
    if (this.visited >= MAX_NODES || depth > MAX_DEPTH || this.#enough()) {
      this.cut = true;
      return;
    }
    this.visited++;
    const name = localName(el);
    if (passedBy.has(name) && isHTML(el)) return;
    const noted = depth > 0 && isNoted(el, name); // the part that is read is no candidate in itself
    const at = this.#els.length;
    this.#els.push(el);
    this.#ups.push(up);
    this.#ends.push(at);
    this.#kinds.push(noted ? this.#marked(el) : 0);
    this.#noted.push(noted);
    this.#inner.push(0);
    if (this.#kinds[at]) this.#found++;
    const mine = noted || name === 'dialog' ? this.#open(el, at) : null;
    const shadow = shadowRoot(el);
    if (!shadow && isSuspect(el, name) && !(this.#judge(at) & HIDDEN) && looksHosting(el)) {
      if (this.suspects.length < MAX_SUSPECTS) this.suspects.push(el);
      else this.unread.add('closed_shadow');
    }
    const assigned = !shadow && name === 'slot' && isHTML(el) ? assignedNodes(el) : [];
    if (assigned.length) {
      for (const child of assigned) if (isElement(child)) this.#walk(child, depth + 1, at);
    } else {
      for (let child = shadow ? firstElement(shadow) : firstElementIn(el); child; child = nextElement(child)) this.#walk(child, depth + 1, at);
    }
    this.#ends[at] = this.#els.length;
    if (mine) mine.to = this.#els.length;
  }

  // #marked is the kind that the markup of an element gives it.
  #marked(el) {
    if (isFrame(el)) return FRAME;
    if (this.#specified ? isListed(el) : isControl(el)) return CONTROL;
    const name = tag(el);
    if ((name === 'object' || name === 'embed') && visible(el)) this.unread.add('plugin');
    else if (name === 'canvas' && isBlankCanvas(el)) this.unread.add('canvas');
    return 0;
  }

  // #open takes the first visible dialog, or a later one that lies over it.
  #open(el, at) {
    if ((this.visited > MAX_DIALOG_SCAN && tag(el) !== 'dialog') || !isDialog(el) || !visible(el)) return null;
    const modal = tag(el) === 'dialog' && matches(el, ':modal');
    if (this.dialog && !modal && this.dialog.modal) return null;
    this.dialog = { from: at, to: -1, modal, controls: this.#kinds[at] ? this.#found - 1 : this.#found };
    return this.dialog;
  }

  // kind is CONTROL, FRAME or nothing.
  kind(at) {
    this.#judge(at);
    return this.#kinds[at];
  }

  // #judge looks at an element, and says what those inside it are to know.
  #judge(at) {
    if (this.#inner[at]) return this.#inner[at];
    const el = this.#els[at];
    let inner = this.#ups[at] < 0 ? 0 : this.#judge(this.#ups[at]);
    if (!this.#specified && !(inner & (HIDDEN | LEAF))) {
      // What is hidden matters only where there is something inside.
      if (firstElementIn(el) && !rendered(el) && styleOf(el).display !== 'contents') inner |= HIDDEN;
      else inner = this.#looksAt(at, el, inner);
      if (this.#noted[at] && this.#kinds[at] === CONTROL && !isListed(el)) surfaces.add(el);
    }
    if (this.#noted[at] && isLeaf(el)) inner |= LEAF;
    return (this.#inner[at] = inner | JUDGED);
  }

  #looksAt(at, el, inner) {
    const style = styleOf(el);
    const pointer = style.cursor === 'pointer';
    const name = tag(el);
    if (!this.#kinds[at] && pointer && !(inner & POINTED) && name !== 'html' && name !== 'body' && name !== 'label' && !wraps(el)) {
      this.#kinds[at] = CONTROL;
      surfaces.add(el);
    }
    if (!this.#kinds[at] && !unscrolled.has(name) && isScroller(el, style)) {
      this.#kinds[at] = CONTROL;
      scrollers.add(el);
    }
    return pointer ? inner | POINTED : inner & ~POINTED;
  }

  // finish looks at all that is inside an element, so that it is known what
  // takes a click there for itself.
  finish(at) {
    if (this.#specified || this.#judge(at) & LEAF) return;
    for (let inside = at + 1; inside < this.#ends[at]; inside++) this.#judge(inside);
  }
}

// Numbers name elements for as long as their document lives.
const numbers = new WeakMap();
let nextNumber = 1;
const numberOf = (el) => {
  let number = numbers.get(el);
  if (number === undefined) {
    number = nextNumber++;
    numbers.set(el, number);
  }
  return number;
};

// inOrder are the parts of an outline in the order in which they are listed:
// the open dialog first.
const inOrder = ({ dialog, length }, root) =>
  (dialog && root === document ? [[dialog.from, dialog.to], [0, dialog.from], [dialog.to, length]] : [[0, length]]);

// select takes the first visible candidates of a window. A frame takes a
// position like any control; its own controls are asked of itself.
const select = (outline, root, offset, anchor) => {
  const kept = [];
  const end = Math.min(offset + MAX_WINDOW, MAX_POSITION);
  let position = 0; // of the next candidate
  let controls = 0;
  let frames = 0;
  let last = -1;
  let full = false; // of controls or frames, and there are more
  let beyond = false; // there are more than a window may look at

  const take = (at) => {
    const kind = outline.kind(at);
    if (!kind) return true;
    if (position >= end) {
      beyond = true;
      return false;
    }
    const el = outline.element(at);
    const here = anchor && position === offset;
    if (here && numbers.get(el) !== anchor) return false;
    if (position < offset || (here ? kind === CONTROL : !visible(el))) {
      position++;
      return true;
    }
    if (kind === FRAME ? frames === MAX_FRAMES : controls === MAX_ELEMENTS) {
      full = true;
      return false;
    }
    if (kind === FRAME) {
      frames++;
    } else {
      controls++;
      outline.finish(at);
    }
    kept.push({ el, position });
    last = position++;
    return true;
  };
  walk: for (const [from, to] of inOrder(outline, root)) for (let at = from; at < to; at++) if (!take(at)) break walk;
  if (anchor && position <= offset) return { moved: true };
  const limited = !full && (beyond || outline.cut);
  const next = full || limited ? (last >= 0 ? last + 1 : position) : -1;
  return { kept, scanned: Math.max(0, position - offset), limited, next: next > offset && next < MAX_POSITION ? next : -1 };
};
