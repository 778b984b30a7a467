// Readable text (TEXT-01 to TEXT-05): what a person can read of a part of the
// page, in order, and nothing that anybody entered. The walk keeps its own
// stack, and is bounded in nodes, in units looked at and in bytes given out.
const textLimits = { nodes: 8192, units: 262144, bytes: 262144 };

const STOP = Symbol('stop');

// visit walks the flat tree from root on, which is part of it, or with light
// its own tree. enter returns what its children are to know, a falsy value to
// leave them out, or STOP.
const visit = (root, enter, light = false) => {
  const path = [];
  const open = (node, around) => {
    const state = enter(node, around);
    if (state === STOP) return false;
    if (state) path.push({ state, below: new Below(node, light) });
    return true;
  };
  if (!open(root, undefined)) return false;
  while (path.length) {
    const { state, below } = path[path.length - 1];
    const node = below.next();
    if (!node) path.pop();
    else if (!open(node, state)) return false;
  }
  return true;
};

const truthy = (el, name) => attr(el, name).trim().toLowerCase() === 'true';

// silent: nothing inside the element may be read as text. An element that is
// only visibility:hidden may have visible children, so that is the texts' own.
const silent = (el, style) => noText.has(tag(el)) || holdsInput(el) || editable(el) || hasAttribute(el, 'hidden') ||
  truthy(el, 'aria-hidden') || style.display === 'none' || style.opacity === '0' || style.contentVisibility === 'hidden';

// muted: something around the element, or itself, makes it silent.
const muted = (el) => {
  const look = pass?.looks.get(el);
  if (look?.heard) return look.style.contentVisibility === 'hidden' || editable(el);
  const known = pass?.muted ?? new Map();
  const path = [];
  let answer = false;
  for (let up = el; up && isElement(up); up = parent(up)) {
    const said = known.get(up);
    if (said !== undefined) {
      answer = said;
      break;
    }
    path.push(up);
    if (path.length === MAX_HOPS || silent(up, styleOf(up))) {
      answer = true;
      break;
    }
  }
  for (const up of path) known.set(up, answer);
  return answer;
};

// Everything that is not special has nothing in its markup that could silence
// it, and is not asked.
const specialTags = new Set([...noText, 'input', 'textarea', 'select', 'datalist', 'br', 'slot', 'details']);
const isSpecial = (el) => specialTags.has(localName(el)) || (hasAttributes(el) && matches(el, '[role],[hidden],[aria-hidden],[contenteditable]'));

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

  get broken() { return this.#gap === '\n'; }

  gap(kind) {
    if (kind === '\n' || this.#gap === '' || (kind === '\t' && this.#gap === ' ')) this.#gap = kind;
  }

  // add takes a text; mark is kept with it for cutBack.
  add(text, mark) {
    const words = text.replace(/[\s\u00a0]+/gu, ' ');
    const core = words.trim();
    if (words.startsWith(' ')) this.gap(' ');
    if (!core || this.full) return;
    let piece = (this.#pieces.length ? this.#gap : '') + core;
    let bytes = piece.length;
    if (/[^\x00-\x7f]/u.test(piece)) {
      piece = piece.toWellFormed();
      bytes = encoder.encode(piece).length;
    }
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

// Reading is one reading of the text of root within limits.
class Reading {
  prose;
  nodes = 0;
  units = 0;
  nodeLimit = false;
  textLimit = false;
  left = new Map(); // when each of watched had been read whole, in nodes
  #limits;
  #light;
  #skip;
  #path = [];

  constructor(limits, light, skip) {
    this.prose = new Prose(limits.bytes);
    this.#limits = limits;
    this.#light = light;
    this.#skip = skip;
  }

  of(root, watched, heard) {
    const path = this.#path;
    if (isElement(root)) {
      this.nodes++;
      this.#enter(root, null, heard);
    } else {
      path.push({ el: null, look: null, edge: '', closed: false, below: new Below(root) });
    }
    while (path.length) {
      const around = path[path.length - 1];
      const node = around.below.next();
      if (!node) {
        path.pop();
        if (around.edge) this.prose.gap(around.edge);
        if (watched?.has(around.el)) this.left.set(around.el, this.nodes);
        continue;
      }
      if (this.nodes >= this.#limits.nodes) {
        this.nodeLimit = true;
        break;
      }
      this.nodes++;
      const type = nodeType(node);
      if (type === 3) {
        if (!this.#take(node, around)) break;
      } else if (type === 1) {
        this.#enter(node, around, heard);
      }
    }
    return this;
  }

  #enter(el, around, heard) {
    if (this.#skip?.(el)) return;
    if (around?.closed && tag(el) !== 'summary') return;
    const special = !around || isSpecial(el);
    if (special && (noText.has(tag(el)) || holdsInput(el) || editable(el) || hasAttribute(el, 'hidden') || truthy(el, 'aria-hidden'))) return;
    const look = lookOf(el);
    const display = look.drawn;
    if (!display) return;
    if (heard && this.#path.length < MAX_HOPS / 2) look.heard = true;
    const edge = display === 'table-cell' ? '\t' : (special && tag(el) === 'br') || !inline.has(display) ? '\n' : '';
    if (edge) this.prose.gap(edge);
    this.#path.push({ el, look, edge, closed: special && tag(el) === 'details' && !hasAttribute(el, 'open'), below: new Below(el, this.#light) });
  }

  // #take reads one text; false ends the reading.
  #take(node, { look, closed }) {
    const data = textOf(node);
    const part = wholeUnits(data, this.#limits.units - this.units);
    this.units += part.length;
    if (!/\S/u.test(part)) {
      if (part && !this.prose.broken) this.prose.gap(look?.lines && part.includes('\n') ? '\n' : ' ');
    } else if (!closed && (!look || look.shown) && hasInk(node)) {
      const lines = part.includes('\n') && look?.lines ? part.split('\n') : [part];
      for (let i = 0; i < lines.length; i++) {
        if (i) this.prose.gap('\n');
        this.prose.add(lines[i], this.nodes);
      }
    }
    this.textLimit = part.length < data.length || this.prose.full;
    return !this.textLimit;
  }
}

// readText collects the text of root within the limits; light keeps to its own
// tree, skip leaves out an element with all that is in it. The reading tells
// when each of watched had been read whole. heard: nothing around root is silent.
const readText = (root, limits, { light = false, skip = null, watched = null, heard = false } = {}) =>
  new Reading(limits, light, skip).of(root, watched, heard);

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
  const found = new Set(partsOf(root).filter((el) => matches(el, liveSelector)).slice(0, 4 * MAX_NEWS));
  for (const field of Array.from(selectAll(root, '[aria-invalid="true" i]')).slice(0, MAX_NEWS)) {
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
  const read = readText(root, textLimits, { watched, heard: true });
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
