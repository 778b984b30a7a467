// Names (NAME-01): aria-labelledby, aria-label, labels, title, placeholder,
// what is rendered; and what that order leaves open is filled in as browsers
// do it. What a user typed or chose is never part of a name.
const MAX_NAME = 1024;
const MAX_NAME_NODES = 2048;
const entryRoles = new Set(['textbox', 'searchbox', 'combobox', 'spinbutton']);

// holdsInput: an element whose inside is, or may be, what a user entered.
const holdsInput = (el) => {
  if (['input', 'textarea', 'select', 'datalist'].includes(tag(el))) return true;
  const given = firstRole(el);
  if (entryRoles.has(given)) return true;
  if (!editable(el)) return false;
  // What stands in an editor as a link or button has a face; an editor has none, whatever else it is.
  return hasAttribute(el, 'contenteditable') || (!['a', 'button'].includes(tag(el)) && given !== 'button' && given !== 'link');
};
// choosing: the inside says what is chosen, as the inside of a field does.
const choosing = (el) => ['listbox', 'slider', 'scrollbar', 'progressbar', 'meter'].includes(firstRole(el)) || ['meter', 'progress'].includes(tag(el));

const noText = new Set(['script', 'style', 'noscript', 'template', 'iframe', 'object', 'embed', 'frame', 'canvas', 'audio', 'video']);
const contentRoles = new Set(['button', 'cell', 'checkbox', 'columnheader', 'gridcell', 'heading', 'link', 'menuitem', 'menuitemcheckbox',
  'menuitemradio', 'option', 'radio', 'row', 'rowheader', 'switch', 'tab', 'tooltip', 'treeitem']);
const contentTags = new Set(['a', 'button', 'summary', 'option', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'td', 'th', 'label']);

// printsName: what is inside the element is its name (name from content).
const printsName = (el) => {
  if (holdsInput(el)) return false;
  const given = firstRole(el);
  return given ? contentRoles.has(given) || !ariaRoles.has(given) : contentTags.has(tag(el)) || namespace(el) === SVG && localName(el) === 'a';
};

const SVG = 'http://www.w3.org/2000/svg';
const fold = (text) => text.replace(/[\t\n\f\r ]+/gu, ' ').replace(/^ | $/gu, '');
const label = (el) => fold(attr(el, 'aria-label').slice(0, 4 * MAX_NAME));
// A tooltip that repeats what a field holds is an entry and no name.
const holds = (el, text) => {
  const read = valueOf[tag(el)];
  if (read) return Boolean(filled(el)) && fold(read(el)) === text;
  if (!holdsInput(el)) return false;
  let entry = '';
  visit(el, (node) => {
    if (isText(node)) entry += textOf(node);
    return entry.length > text.length + 64 ? STOP : { node };
  });
  return fold(entry) === text;
};
const tooltip = (el) => {
  const text = fold(attr(el, 'title').slice(0, 4 * MAX_NAME));
  return text && holds(el, text) ? '' : text;
};

// generated is the text that a style sheet prints before or after an element,
// or the text that it gives instead of it.
const generated = (el, which) => {
  const style = getComputedStyle(el, which);
  const { content } = style;
  if (content === 'none' || content === 'normal' || content === '' || style.display === 'none') return '';
  let out = '';
  for (const [piece] of content.slice(0, 4096).matchAll(/"(?:[^"\\]|\\.)*"|\/|[a-z-]+\([^)]*\)/gu)) {
    if (piece === '/') out = ''; // what follows is the text for reading aloud
    else if (piece.startsWith('"')) out += piece.slice(1, -1).replace(/\\(.)/gu, '$1');
  }
  return style.display === 'inline' ? out : ` ${out} `;
};

const unseen = (el, style) => style.display === 'none' || (style.display !== 'contents' && style.visibility !== 'visible') ||
  truthy(el, 'aria-hidden');

// Naming is one computation of a name. A node counts once in it, and all of it
// is bounded.
class Naming {
  #seen = new Set();
  #nodes = 0;
  #units = 0;

  get #spent() { return this.#nodes > MAX_NAME_NODES || this.#units > 4 * MAX_NAME; }

  // referenced is the text of the elements that aria-labelledby names.
  referenced(el) {
    const parts = [];
    for (const id of attr(el, 'aria-labelledby').slice(0, 1024).split(/\s+/u).filter(Boolean).slice(0, 8)) {
      const source = byId(el, id);
      if (source) parts.push(this.#part(source, true, unseen(source, styleOf(source)) || !rendered(source, { visibilityProperty: true })));
    }
    return fold(parts.join(' '));
  }

  // native is what HTML and SVG themselves name an element with.
  native(el) {
    const first = (name) => {
      for (const child of children(el)) if (isElement(child) && localName(child) === name) return fold(this.#part(child, true, true));
      return '';
    };
    if (namespace(el) === SVG) return first('title');
    switch (tag(el)) {
      case 'input': {
        const type = inputType(el);
        if (['submit', 'button', 'reset'].includes(type)) return this.#labels(el) || fold(attr(el, 'value'));
        if (type === 'image') return this.#labels(el) || fold(attr(el, 'alt')) || fold(attr(el, 'value'));
        return this.#labels(el);
      }
      case 'img': case 'area': return fold(attr(el, 'alt').slice(0, 4 * MAX_NAME));
      case 'fieldset': return first('legend');
      case 'table': return first('caption');
      case 'figure': return first('figcaption');
      case 'iframe': case 'frame': return tooltip(el);
    }
    return this.#labels(el);
  }

  #labels(el) {
    const read = formLabels[tag(el)];
    const labels = read && read(el);
    return labels ? fold(Array.from(labels).slice(0, 8).map((one) => this.#part(one, false, false)).join(' ')) : '';
  }

  // content is what is printed inside the element.
  content(el) {
    this.#seen.add(el);
    return fold(this.#inside(el, false)).trim(); // at its ends, no space counts
  }

  // #part is what an element adds to another's name.
  #part(el, referenced, hiddenToo) {
    if (this.#spent) return '';
    this.#nodes++;
    if (this.#seen.has(el)) return referenced || !hasAttribute(el, 'aria-labelledby') ? '' : this.referenced(el);
    const style = styleOf(el);
    if (!hiddenToo && unseen(el, style)) return style.display === 'none' || truthy(el, 'aria-hidden') ? '' : this.#visibleInside(el);
    let text = '';
    if (!referenced && hasAttribute(el, 'aria-labelledby')) text = this.referenced(el);
    this.#seen.add(el);
    if (!text && !(holdsInput(el) && !referenced)) text = label(el);
    if (!text && (holdsInput(el) || choosing(el))) return this.#button(el);
    if (!text && !noText.has(tag(el))) text = this.#own(el, hiddenToo) || tooltip(el);
    this.#units += text.length;
    return /^(inline|contents)$/u.test(style.display) ? text : ` ${text} `;
  }

  #button(el) {
    return tag(el) === 'input' && ['submit', 'button', 'reset', 'image'].includes(inputType(el)) ? ` ${this.native(el)} ` : '';
  }

  #own(el, hiddenToo) {
    if (tag(el) === 'img') return fold(attr(el, 'alt').slice(0, 4 * MAX_NAME));
    if (tag(el) === 'br') return ' ';
    if (['fieldset', 'table', 'figure'].includes(tag(el)) || namespace(el) === SVG) {
      const native = this.native(el);
      if (native) return native;
    }
    return this.#inside(el, hiddenToo);
  }

  // #visibleInside is what can be seen in an element that cannot be.
  #visibleInside(el) {
    let out = '';
    for (const node of children(el)) if (isElement(node)) out += this.#part(node, false, false);
    return out;
  }

  #inside(el, hiddenToo) {
    let out = generated(el, '::before');
    const add = (node) => {
      if (this.#spent) return;
      if (isText(node)) {
        const text = textOf(node).slice(0, 4 * MAX_NAME);
        this.#units += text.length;
        out += text;
      } else if (isElement(node)) out += this.#part(node, false, hiddenToo);
    };
    const below = new Below(el);
    for (let node = below.next(); node; node = below.next()) add(node);
    for (const id of attr(el, 'aria-owns').slice(0, 1024).split(/\s+/u).filter(Boolean).slice(0, 8)) {
      const owned = byId(el, id);
      if (owned) out += ` ${this.#part(owned, false, hiddenToo)} `;
    }
    return out + generated(el, '::after');
  }
}

const byId = (el, id) => {
  for (const root of [rootOf(el), document]) {
    const find = root instanceof ShadowRoot ? DocumentFragment.prototype.getElementById : Document.prototype.getElementById;
    if (!(root instanceof ShadowRoot) && !(root instanceof Document)) continue;
    const found = Reflect.apply(find, root, [id]);
    if (found) return found;
  }
  return null;
};

const labelledBy = (el) => (hasAttribute(el, 'aria-labelledby') ? new Naming().referenced(el) : '');
const nativeLabel = (el) => new Naming().native(el);

// writing is the text inside an element, without what is hidden.
const writing = (el) => {
  let text = pass?.writing.get(el);
  if (text === undefined) {
    text = new Naming().content(el);
    pass?.writing.set(el, text);
  }
  return text;
};

const faces = { submit: 'Submit', reset: 'Reset', image: 'Submit' };
// caption is what is printed on an element: a push button's value is its face
// and not an entry.
const caption = (el) => {
  if (tag(el) !== 'input') return holdsInput(el) ? '' : writing(el);
  const type = inputType(el);
  if (type === 'image') return fold(attr(el, 'alt')) || faces.image;
  return ['submit', 'button', 'reset'].includes(type) ? fold(attr(el, 'value')) || (faces[type] ?? '') : '';
};
const printed = (el) => (tag(el) === 'input' || printsName(el) || isSurface(el) ? caption(el) : '');

// The order of the specification for its own candidates; elsewhere what is
// printed comes before what only a tooltip says.
const placeholder = (el) => fold(attr(el, 'placeholder')) || fold(attr(el, 'aria-placeholder'));
const specified = [labelledBy, label, nativeLabel, tooltip, placeholder, printed];
const usual = [labelledBy, label, nativeLabel, printed, tooltip, placeholder];
const accessibleName = (el) => {
  for (const source of isListed(el) ? specified : usual) {
    const name = source(el);
    if (name) return clip(name, MAX_NAME);
  }
  return '';
};

const dialogOf = (el) => {
  for (const up of ancestors(el)) if (isDialog(up)) return up;
  return null;
};
const dialogName = (dialog) => {
  let name = label(dialog) || labelledBy(dialog);
  if (!name) {
    const heading = selectAll(dialog, 'h1,h2,h3')[0];
    name = heading ? writing(heading) : '';
  }
  return clip(name, 128);
};

// names are those of the nodes of a labelled page, for tests; what has no place
// on the page has none.
const names = () => {
  const removed = climb((up) => styleOf(up).display === 'none');
  return Array.from(selectAll(document, '[data-expectedlabel]')).slice(0, 512).map((el) =>
    ({ Test: attr(el, 'data-testname'), Expected: attr(el, 'data-expectedlabel'), Name: removed(el) ? '' : accessibleName(el) }));
};
