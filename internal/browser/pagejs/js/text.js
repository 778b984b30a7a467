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

// A pass remembers what the parts of one observation ask of the same elements.
let pass = null;
const newPass = () => ({ roots: new Set(), special: new Set(), muted: new Map() });

// muted: something around the element, or itself, makes it silent.
const muted = (el) => {
  const known = pass?.muted ?? new Map();
  const path = [];
  let answer = false;
  for (const up of ancestors(el)) {
    if (known.has(up)) {
      answer = known.get(up);
      break;
    }
    path.push(up);
    if (path.length === 256 || silent(up, styleOf(up))) {
      answer = true;
      break;
    }
  }
  for (const up of path) known.set(up, answer);
  return answer;
};

// Everything that is not special has nothing in its markup that could silence
// it. One native query finds them; most elements are then never asked.
const specialSelector = 'script,style,noscript,template,iframe,object,embed,frame,canvas,audio,video,input,textarea,select,datalist,br,slot,details,' +
  '[role],[hidden],[aria-hidden],[contenteditable]';
const findSpecial = (root, known) => {
  if (known.roots.has(root)) return;
  known.roots.add(root);
  for (const el of selectAll(root, specialSelector)) known.special.add(el);
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
    let piece = ((this.#pieces.length ? this.#gap : '') + core).toWellFormed();
    let bytes = /[^\x00-\x7f]/u.test(piece) ? encoder.encode(piece).length : piece.length;
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

const probe = new Range();
const hasInk = (text) => {
  probe.selectNodeContents(text);
  return hasBox(probe.getBoundingClientRect());
};

// drawn says how an element is laid out, and nothing when it and all inside it
// are not shown.
const withOpacity = { opacityProperty: true };
const drawn = (el) => {
  if (rendered(el, withOpacity)) return styleOf(el).display;
  return styleOf(el).display === 'contents' ? 'contents' : '';
};

// readText collects the text of root within the limits; light keeps to its own
// tree, skip leaves out an element with all that is in it. left tells when each
// of watched had been read whole, in nodes.
const readText = (root, limits, { light = false, skip = null, watched = null } = {}) => {
  const prose = new Prose(limits.bytes);
  const read = { prose, nodes: 0, units: 0, nodeLimit: false, textLimit: false, left: new Map() };
  const known = pass ?? newPass();
  findSpecial(isElement(root) ? (pass ? rootOf(root) : root) : root, known);
  if (!pass && isElement(root)) known.special.add(root);

  // takeText reads one text; false ends the reading.
  const takeText = (node, around) => {
    const data = textOf(node);
    const part = wholeUnits(data, limits.units - read.units);
    read.units += part.length;
    if (!/\S/u.test(part)) {
      if (part && !prose.broken) prose.gap(part.includes('\n') && preserves(around) ? '\n' : ' ');
    } else if (legible(around) && hasInk(node)) {
      const lines = part.includes('\n') && preserves(around) ? part.split('\n') : [part];
      for (let i = 0; i < lines.length; i++) {
        if (i) prose.gap('\n');
        prose.add(lines[i], read.nodes);
      }
    }
    read.textLimit = part.length < data.length || prose.full;
    return !read.textLimit;
  };
  // What only some elements are asked is asked once, when it matters.
  const legible = (around) => (around.shown ??= !around.closed && (!around.el || styleOf(around.el).visibility === 'visible'));
  const preserves = (around) => (around.lines ??= Boolean(around.el) && /^(pre|break)/u.test(styleOf(around.el).whiteSpace));

  const path = [];
  const enter = (el, around) => {
    if (skip?.(el)) return;
    const special = known.special.has(el);
    if (around?.closed && tag(el) !== 'summary') return;
    if (special && (noText.has(tag(el)) || holdsInput(el) || editable(el) || hasAttribute(el, 'hidden') || truthy(el, 'aria-hidden'))) return;
    const display = drawn(el);
    if (!display) return;
    const edge = display === 'table-cell' ? '\t' : (special && tag(el) === 'br') || !inline.has(display) ? '\n' : '';
    if (edge) prose.gap(edge);
    const state = { el, edge, closed: special && tag(el) === 'details' && !hasAttribute(el, 'open'), next: null, list: null, at: 0 };
    const shadow = light ? null : shadowRoot(el);
    if (shadow) findSpecial(shadow, known);
    const assigned = !light && special && !shadow && tag(el) === 'slot' ? assignedNodes(el) : [];
    if (assigned.length) state.list = assigned;
    else state.next = firstChild(shadow ?? el);
    path.push(state);
  };
  if (isElement(root)) {
    read.nodes++;
    enter(root, null);
  } else {
    path.push({ el: null, edge: '', closed: false, next: firstChild(root), list: null, at: 0 });
  }
  while (path.length) {
    const around = path.at(-1);
    const node = around.list ? around.list[around.at++] : around.next;
    if (!node) {
      path.pop();
      if (around.edge) prose.gap(around.edge);
      if (watched?.has(around.el)) read.left.set(around.el, read.nodes);
      continue;
    }
    if (!around.list) around.next = nextSibling(node);
    if (read.nodes >= limits.nodes) {
      read.nodeLimit = true;
      break;
    }
    read.nodes++;
    const type = nodeType(node);
    if (type === 3) {
      if (!takeText(node, around)) break;
    } else if (type === 1) {
      enter(node, around);
    }
  }
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
  const found = new Set(Array.from(selectAll(root, liveSelector)).slice(0, 4 * MAX_NEWS));
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
