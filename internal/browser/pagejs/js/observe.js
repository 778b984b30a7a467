// One observation in one pass over the flat tree (OBS-01 to OBS-06, CAP-04,
// CAP-05). Handles live here, in the isolated world, and only for the newest
// revision.
const MAX_CANDIDATES = 4096;
const MAX_ELEMENTS = 256;
const MAX_TEXT = 262144;
const MAX_NODES = 200000;
const MAX_DEPTH = 1024;

let handles = { revision: '', list: [] };

const isCandidate = (el) =>
  ['a', 'button', 'input', 'select', 'textarea'].includes(tag(el)) || hasAttribute(el, 'role') ||
  (isHTML(el) && hasAttribute(el, 'contenteditable') && editable(el));

const inline = new Set(['inline', 'inline-block', 'inline-flex', 'inline-grid', 'inline-table', 'contents', 'ruby', 'ruby-text']);
const cells = new Set(['table-cell']);

// Prose collects visible text with line breaks where blocks end, bounded in
// bytes of UTF-8.
class Prose {
  #parts = [];
  #bytes = 0;
  #gap = '';
  truncated = false;

  gap(kind) {
    if (kind === '\n' || this.#gap === '') this.#gap = kind;
  }

  add(text) {
    if (this.truncated) return;
    const words = text.replace(/[\s\u00a0]+/gu, ' ');
    const core = words.trim();
    if (words.startsWith(' ')) this.gap(' ');
    if (!core) return;
    const piece = ((this.#parts.length ? this.#gap : '') + core).toWellFormed();
    const size = new TextEncoder().encode(piece).length;
    if (this.#bytes + size > MAX_TEXT) {
      this.truncated = true;
      const room = new Uint8Array(MAX_TEXT - this.#bytes);
      const { read } = new TextEncoder().encodeInto(piece, room);
      this.#parts.push(piece.slice(0, read));
      return;
    }
    this.#parts.push(piece);
    this.#bytes += size;
    this.#gap = words.endsWith(' ') ? ' ' : '';
  }

  toString() { return this.#parts.join(''); }
}

const describe = (el, open) => {
  const name = accessibleName(el);
  const printed = caption(el);
  return {
    role: role(el) || 'generic',
    name,
    disabled: disabled(el) || inert(el, open),
    checked: isNativeChoice(el) ? checkedState(el) : null,
    fieldKind: fieldKind(el),
    text: printed === name ? '' : clip(printed, 256),
    context: dialogName(el),
  };
};

const observe = ({ revision }) => {
  handles = { revision: '', list: [] };
  const dialog = openDialog();
  const kept = [];
  const prose = new Prose();
  let candidates = 0;
  let nodes = 0;
  let more = false;

  const walk = (node, quiet, depth) => {
    if (node === dialog && depth > 0) return; // was walked first
    if (++nodes > MAX_NODES || depth > MAX_DEPTH) {
      more = true;
      return;
    }
    if (isText(node)) {
      if (quiet || prose.truncated || !/\S/u.test(textOf(node))) {
        if (!quiet) prose.gap(' ');
        return;
      }
      if (textHasBox(node)) prose.add(textOf(node));
      return;
    }
    let silent = quiet;
    let display = 'block';
    if (isElement(node)) {
      if (noText.has(tag(node))) return;
      const style = styleOf(node);
      display = style.display;
      if (display === 'none') return;
      if (isCandidate(node)) {
        if (++candidates > MAX_CANDIDATES) more = true;
        else if (visible(node, style)) {
          if (kept.length < MAX_ELEMENTS) kept.push(node);
          else more = true;
        }
      }
      silent ||= style.opacity === '0' || hasAttribute(node, 'hidden') || attr(node, 'aria-hidden') === 'true' || holdsInput(node) ||
        style.contentVisibility === 'hidden';
      if (tag(node) === 'br' || !inline.has(display)) prose.gap(cells.has(display) ? ' ' : '\n');
      walkChildren(node, silent, depth, style.visibility !== 'visible');
      if (!inline.has(display)) prose.gap(cells.has(display) ? ' ' : '\n');
      return;
    }
    walkChildren(node, silent, depth, false);
  };
  // A text is hidden by its own parent's visibility; an element brings its own.
  const walkChildren = (node, quiet, depth, hiddenText) => {
    for (const child of children(node)) walk(child, quiet || (hiddenText && isText(child)), depth + 1);
  };

  if (dialog) walk(dialog, false, 0);
  walk(document, false, 1);

  const open = modals();
  const elements = kept.map((el) => describe(el, open));
  handles = { revision, list: kept.map((el, i) => ({ ref: new WeakRef(el), role: elements[i].role, name: elements[i].name })) };
  const title = accessor(Document.prototype, 'title')(document);
  return {
    url: location.href,
    title: clip(collapse(title), 1024),
    text: prose.toString(),
    textTruncated: prose.truncated,
    elements,
    more,
  };
};

const forget = () => {
  handles = { revision: '', list: [] };
  return null;
};
