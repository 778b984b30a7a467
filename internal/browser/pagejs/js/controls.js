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
const listedSelector = 'a,button,input,select,textarea,[role]';
const takingSelector = `${listedSelector},summary,label,area,[tabindex],[contenteditable],audio,video,${handled}`;
const notedSelector = `${takingSelector},iframe,frame,object,embed,canvas,img,slot,script,style,template,noscript`;

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
  if (collapse(attr(el, 'alt')) || box(el).width < 24 || box(el).height < 24) return false;
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

const isFrame = (el) => ['iframe', 'frame'].includes(tag(el)) || (['object', 'embed'].includes(tag(el)) && /html|svg/u.test(attr(el, 'type')));

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

// survey collects candidates until the first need of them are known, whatever
// comes behind. specified keeps to the specification's selector.
const survey = (root, need, specified) => {
  const found = [];
  const unread = new Set();
  const suspects = [];
  let visited = 0;
  let dialog = null;
  let cut = false;
  const noted = new Set(selectAll(root, notedSelector));

  const enough = () => visited > MAX_DIALOG_SCAN && (dialog && dialog.to < 0 ? found.length - dialog.from : found.length) >= need;

  // around: hidden, in a leaf, or the parent has the pointer cursor itself.
  const walk = (el, depth, hidden, leaf, pointed) => {
    if (visited >= MAX_NODES || depth > MAX_DEPTH || enough()) {
      cut = true;
      return;
    }
    visited++;
    const note = noted.has(el);
    const name = tag(el);
    if (note && (name === 'script' || name === 'style' || name === 'template' || name === 'noscript')) return;
    let kind = '';
    if (note) {
      if (isFrame(el)) kind = 'frame';
      else if (specified ? isListed(el) : isControl(el)) kind = 'control';
      else if ((name === 'object' || name === 'embed') && visible(el)) unread.add('plugin');
      else if (name === 'canvas' && isBlankCanvas(el)) unread.add('canvas');
    }
    if (!specified && !hidden && !leaf) {
      // What is hidden matters only where there is something inside.
      if (firstElement(el) && !rendered(el) && styleOf(el).display !== 'contents') hidden = true;
      else {
        const style = styleOf(el);
        const pointer = style.cursor === 'pointer';
        if (!kind && pointer && !pointed && name !== 'html' && name !== 'body' && name !== 'label' && !wraps(el)) {
          kind = 'control';
          surfaces.add(el);
        }
        if (!kind && !unscrolled.has(name) && isScroller(el, style)) {
          kind = 'control';
          scrollers.add(el);
        }
        pointed = pointer;
      }
      if (note && kind === 'control' && !isListed(el)) surfaces.add(el);
    }
    if (kind) found.push(el);
    let mine = null;
    if (visited <= MAX_DIALOG_SCAN && note || name === 'dialog') {
      if (isDialog(el) && visible(el)) {
        const modal = name === 'dialog' && matches(el, ':modal');
        if (!dialog || modal || !dialog.modal) {
          dialog = { from: kind ? found.length - 1 : found.length, to: -1, modal, el };
          mine = dialog;
        }
      }
    }
    leaf ||= note && isLeaf(el);
    const shadow = shadowRoot(el);
    if (shadow) {
      for (const inner of selectAll(shadow, notedSelector)) noted.add(inner);
      for (let child = firstElement(shadow); child; child = nextElement(child)) walk(child, depth + 1, hidden, leaf, pointed);
    } else {
      if (!hidden && isSuspect(el)) {
        if (suspects.length < MAX_SUSPECTS) suspects.push(el);
        else unread.add('closed_shadow');
      }
      const assigned = name === 'slot' ? assignedNodes(el) : [];
      if (assigned.length) {
        for (const child of assigned) if (isElement(child)) walk(child, depth + 1, hidden, leaf, pointed);
      } else {
        for (let child = firstElement(el); child; child = nextElement(child)) walk(child, depth + 1, hidden, leaf, pointed);
      }
    }
    if (mine) mine.to = found.length;
  };

  if (isElement(root)) walk(root, 0, false, false, false);
  else for (let child = firstElement(root); child; child = nextElement(child)) walk(child, 1, false, false, false);

  let list = found;
  if (dialog && root === document) {
    const to = dialog.to < 0 ? found.length : dialog.to;
    list = [...found.slice(dialog.from, to), ...found.slice(0, dialog.from), ...found.slice(to)];
  }
  return { list, visited, cut, unread, suspects };
};

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

// select takes the first visible candidates of a window. A frame takes a
// position like any control; its own controls are asked of itself.
const select = ({ list, cut }, offset, anchor) => {
  const kept = [];
  let position = offset;
  let controls = 0;
  let frames = 0;
  let last = -1;
  let more = false;
  const end = Math.min(list.length, offset + MAX_WINDOW, MAX_POSITION);
  if (anchor && offset >= end) return { moved: true };
  for (; position < end; position++) {
    const el = list[position];
    if (anchor && position === offset) {
      if (numbers.get(el) !== anchor) return { moved: true };
      if (!isFrame(el)) continue;
    } else if (!visible(el)) continue;
    if (isFrame(el) ? frames === MAX_FRAMES : controls === MAX_ELEMENTS) {
      more = true;
      break;
    }
    if (isFrame(el)) frames++;
    else controls++;
    kept.push({ el, position });
    last = position;
  }
  const limited = !more && (list.length > end || cut);
  const next = more || limited ? (last >= 0 ? last + 1 : end) : -1;
  return { kept, scanned: position - offset, limited, next: next > offset && next < MAX_POSITION ? next : -1 };
};
