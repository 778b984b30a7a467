// Readable text (TEXT-01 to TEXT-05): what a person can read of a part of the
// page, in order, and nothing that anybody entered. The walk keeps its own
// stack, and is bounded in nodes, in units looked at and in bytes given out.
const textLimits = { nodes: 8192, units: 262144, bytes: 262144 };

const STOP = Symbol('stop');

// visit walks the tree from root on, which is part of it. enter returns what
// its children are to know, a falsy value to leave them out, or STOP.
const visit = (root, enter, leave = () => {}, inside = children) => {
  const path = [];
  const open = (node) => {
    const state = enter(node, path.at(-1)?.state);
    if (state === STOP) return false;
    if (state) path.push({ node, state, inside: inside(node)[Symbol.iterator]() });
    return true;
  };
  if (!open(root)) return false;
  while (path.length) {
    const top = path.at(-1);
    const next = top.inside.next();
    if (next.done) {
      path.pop();
      leave(top.node, top.state);
    } else if (!open(next.value)) {
      return false;
    }
  }
  return true;
};

// lightChildren are the children of a node in its own tree.
function* lightChildren(node) {
  for (let child = firstChild(node); child; child = nextSibling(child)) yield child;
}

const truthy = (el, name) => attr(el, name).trim().toLowerCase() === 'true';

// silent: nothing inside the element may be read as text. An element that is
// only visibility:hidden may have visible children, so that is the texts' own.
const silent = (el, style) => noText.has(tag(el)) || holdsInput(el) || editable(el) || hasAttribute(el, 'hidden') ||
  truthy(el, 'aria-hidden') || style.display === 'none' || style.opacity === '0' || style.contentVisibility === 'hidden';

// muted: something around the element makes it silent.
const muted = (el) => {
  let hops = 0;
  for (const up of ancestors(el)) if (++hops === 256 || silent(up, styleOf(up))) return true;
  return false;
};

const inline = new Set(['inline', 'inline-block', 'inline-flex', 'inline-grid', 'inline-table', 'contents', 'ruby', 'ruby-text']);

// wholeUnits cuts a text to at most max UTF-16 units without halving a character.
const wholeUnits = (text, max) => {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max);
};

const encoder = new TextEncoder();

// Prose joins pieces of text: a line break where a block ends, a tab where a
// table cell does, one space for any other white space, nothing where inline
// text continues. It is bounded in bytes of UTF-8.
class Prose {
  #max;
  #pieces = [];
  #bytes = 0;
  #gap = '';
  full = false;

  constructor(max) { this.#max = max; }

  get bytes() { return this.#bytes; }

  gap(kind) {
    if (kind === '\n' || this.#gap === '' || (kind === '\t' && this.#gap === ' ')) this.#gap = kind;
  }

  // add takes a text; mark is kept with it for cutBack.
  add(text, mark) {
    const words = text.replace(/[\s\u00a0]+/gu, ' ');
    const core = words.trim();
    if (words.startsWith(' ')) this.gap(' ');
    if (!core || this.full) return;
    let piece = ((this.#pieces.length ? this.#gap : '') + core).toWellFormed();
    let bytes = encoder.encode(piece).length;
    if (this.#bytes + bytes > this.#max) {
      this.full = true;
      const room = new Uint8Array(this.#max - this.#bytes);
      const { read, written: filled } = encoder.encodeInto(piece, room);
      piece = piece.slice(0, read);
      bytes = filled;
    }
    this.#pieces.push({ piece, bytes, mark });
    this.#bytes += bytes;
    this.#gap = words.endsWith(' ') ? ' ' : '';
  }

  // cutBack takes pieces off the end until the rest has at most max bytes and
  // no mark over last. It returns the last mark that is left.
  cutBack(max, last) {
    while (this.#pieces.length && (this.#bytes > max || this.#pieces.at(-1).mark > last)) {
      this.#bytes -= this.#pieces.pop().bytes;
    }
    return this.#pieces.at(-1)?.mark ?? 0;
  }

  toString() { return this.#pieces.map((p) => p.piece).join(''); }
}

// readText collects the text of root within the limits; skip leaves out an
// element with all that is in it. left tells when each of watched had been
// read whole, in nodes.
const readText = (root, limits, { inside = children, skip = () => false, watched = new Set() } = {}) => {
  const prose = new Prose(limits.bytes);
  const read = { prose, nodes: 0, units: 0, nodeLimit: false, textLimit: false, left: new Map() };
  const enter = (node, around) => {
    if (read.nodes >= limits.nodes) {
      read.nodeLimit = true;
      return STOP;
    }
    read.nodes++;
    if (isText(node)) {
      if (around && !around.shown) return false;
      const data = textOf(node);
      const part = wholeUnits(data, limits.units - read.units);
      read.units += part.length;
      if (!/\S/u.test(part)) {
        if (part) prose.gap(around?.lines && part.includes('\n') ? '\n' : ' ');
      } else if (textHasBox(node)) {
        if (around?.lines) {
          for (const [i, line] of part.split('\n').entries()) {
            if (i) prose.gap('\n');
            prose.add(line, read.nodes);
          }
        } else {
          prose.add(part, read.nodes);
        }
      }
      if (part.length === data.length && !prose.full) return false;
      read.textLimit = true;
      return STOP;
    }
    if (!isElement(node)) return { shown: true, edge: '' };
    if (skip(node) || (around?.closed && tag(node) !== 'summary')) return false;
    const style = styleOf(node);
    if (silent(node, style) || (style.display !== 'contents' && !rendered(node))) return false;
    const edge = style.display === 'table-cell' ? '\t' : tag(node) === 'br' || !inline.has(style.display) ? '\n' : '';
    if (edge) prose.gap(edge);
    const closed = tag(node) === 'details' && !hasAttribute(node, 'open');
    return { shown: style.visibility === 'visible' && !closed, edge, closed, lines: /^(pre|break)/u.test(style.whiteSpace) };
  };
  const leave = (node, { edge }) => {
    if (edge) prose.gap(edge);
    if (watched.has(node)) read.left.set(node, read.nodes);
  };
  visit(root, enter, leave, inside);
  return read;
};

// news are the parts of the page that tell what has just happened: live
// regions, and the messages of fields that are marked as wrong.
const MAX_NEWS = 32;
const newsLimits = { nodes: 1024, units: 16384, bytes: 16384 };
const liveSelector = '[role="alert" i],[role="status" i],[aria-live="assertive" i],[aria-live="polite" i],output';

const errorMessages = (el) => {
  const ids = `${attr(el, 'aria-errormessage').slice(0, 512)} ${attr(el, 'aria-describedby').slice(0, 512)}`;
  return ids.split(/\s+/u).filter(Boolean).slice(0, 8).map((id) => byId(el, id)).filter(Boolean);
};

const news = (root) => {
  const all = method(root === document ? Document.prototype : Element.prototype, 'querySelectorAll');
  const found = new Set(Array.from(all(root, liveSelector)).slice(0, 4 * MAX_NEWS));
  for (const field of Array.from(all(root, '[aria-invalid="true" i]')).slice(0, MAX_NEWS)) {
    for (const message of errorMessages(field)) if (root === document || within(message, root)) found.add(message);
  }
  return found;
};

// pageText is the text of the page or of a region of it. When a limit is hit,
// the news that the walk did not reach come first and the text before the
// limit gives them room, so that a short reading never drops the error that
// the page has just shown.
const pageText = (root) => {
  const watched = news(root);
  const read = readText(root, textLimits, { watched });
  const { prose } = read;
  const answer = (text, nodes) => ({
    text,
    textNodes: nodes,
    textUnits: read.units,
    textNodeLimit: read.nodeLimit,
    textLimit: read.textLimit,
  });
  if (!read.nodeLimit && !read.textLimit) return answer(prose.toString(), read.nodes);
  const first = new Prose(newsLimits.bytes);
  let spent = 0;
  let units = 0;
  let count = 0;
  for (const el of watched) {
    if (!read.textLimit && read.left.get(el) <= textLimits.nodes - newsLimits.nodes) continue;
    if (count === MAX_NEWS || spent >= newsLimits.nodes || units >= newsLimits.units || first.full) break;
    if (!visible(el) || muted(el)) continue;
    const part = readText(el, { nodes: newsLimits.nodes - spent, units: newsLimits.units - units, bytes: 2048 });
    spent += part.nodes;
    units += part.units;
    const text = part.prose.toString();
    if (!text) continue;
    count++;
    for (const line of text.split('\n')) {
      first.gap('\n');
      first.add(line, 0);
    }
  }
  const told = first.toString();
  if (!told) return answer(prose.toString(), read.nodes);
  prose.cutBack(textLimits.bytes - encoder.encode(told).length - 1, textLimits.nodes - spent);
  const rest = prose.toString();
  return answer(rest ? `${told}\n${rest}` : told, Math.min(read.nodes, textLimits.nodes - spent) + spent);
};
