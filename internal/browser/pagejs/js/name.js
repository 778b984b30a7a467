// Names (NAME-01): aria-labelledby, aria-label, labels, title, placeholder,
// what is rendered. What a user typed or chose is never part of a name.
const MAX_NAME = 1024;
const entryRoles = new Set(['textbox', 'searchbox', 'combobox', 'spinbutton']);

// holdsInput: an element whose inside is, or may be, what a user entered.
const holdsInput = (el) => {
  if (['input', 'textarea', 'select', 'datalist'].includes(tag(el))) return true;
  const given = attr(el, 'role').trim().split(/\s+/u)[0].toLowerCase();
  if (entryRoles.has(given)) return true;
  return editable(el) && !['a', 'button'].includes(tag(el)) && given !== 'button' && given !== 'link';
};
const noText = new Set(['script', 'style', 'noscript', 'template', 'iframe', 'object', 'embed', 'frame', 'canvas', 'audio', 'video']);

// writing is the text inside an element, at most MAX_NAME characters; hidden
// parts count only where a label may be hidden.
const writing = (el, hiddenToo) => {
  let out = '';
  let nodes = 0;
  let pictures = 0;
  const add = (node) => {
    if (++nodes > 2048 || out.length > 4 * MAX_NAME) return;
    if (isText(node)) {
      out += textOf(node);
      return;
    }
    if (!isElement(node) || noText.has(tag(node)) || holdsInput(node)) return;
    if (!hiddenToo) {
      const style = styleOf(node);
      if (style.display === 'none' || style.visibility !== 'visible' || attr(node, 'aria-hidden') === 'true') return;
      if (style.display !== 'inline') out += ' ';
    }
    if (tag(node) === 'img') {
      if (++pictures <= 8) out += ` ${attr(node, 'alt')} `;
      return;
    }
    if (tag(node) === 'br') out += ' ';
    for (const child of children(node)) add(child);
  };
  add(el);
  return collapse(out);
};

const byId = (el, id) => {
  for (const root of [rootOf(el), document]) {
    const find = root instanceof ShadowRoot ? DocumentFragment.prototype.getElementById : Document.prototype.getElementById;
    if (!(root instanceof ShadowRoot) && !(root instanceof Document)) continue;
    const found = Reflect.apply(find, root, [id]);
    if (found) return found;
  }
  return null;
};

const labelledBy = (el) => {
  const parts = [];
  for (const id of attr(el, 'aria-labelledby').slice(0, 1024).split(/\s+/u).filter(Boolean).slice(0, 8)) {
    const source = byId(el, id);
    if (!source) continue;
    const label = holdsInput(source) ? '' : collapse(attr(source, 'aria-label'));
    parts.push(label || writing(source, true));
  }
  return parts.filter(Boolean).join(' ');
};

const nativeLabel = (el) => {
  const read = formLabels[tag(el)];
  const labels = read && read(el);
  return labels ? Array.from(labels).slice(0, 8).map((label) => writing(label, false)).filter(Boolean).join(' ') : '';
};

// caption is what is printed on an element: a push button's value is its face
// and not an entry.
const caption = (el) => {
  if (tag(el) === 'input') {
    const type = inputType(el);
    if (type === 'image') return collapse(attr(el, 'alt'));
    if (!['submit', 'button', 'reset'].includes(type)) return '';
    return collapse(attr(el, 'value')) || { submit: 'Submit', reset: 'Reset', button: '' }[type];
  }
  return holdsInput(el) ? '' : writing(el, false);
};

const accessibleName = (el) => {
  const sources = [labelledBy, (e) => collapse(attr(e, 'aria-label')), nativeLabel,
    (e) => collapse(attr(e, 'title')), (e) => collapse(attr(e, 'placeholder')), caption];
  for (const source of sources) {
    const name = source(el);
    if (name) return clip(name, MAX_NAME);
  }
  return '';
};

const dialogName = (el) => {
  for (const up of ancestors(el)) {
    if (!isDialog(up)) continue;
    let name = collapse(attr(up, 'aria-label')) || labelledBy(up);
    if (!name) {
      const heading = method(Element.prototype, 'querySelector')(up, 'h1,h2,h3');
      name = heading ? writing(heading, false) : '';
    }
    return clip(name, 128);
  }
  return '';
};
