// What an agent needs to choose a control, beyond its name (1.9.0). Nothing
// here tells a field's value or its length.
const MAX_OPTIONS = 64;
const MAX_HINT = 120;

const yes = (el, name) => {
  const given = attr(el, name).trim().toLowerCase();
  return given === 'true' ? true : given === 'false' ? false : null;
};
const detailsOpen = (el) => {
  const details = tag(el) === 'summary' ? parent(el) : null;
  return details && isElement(details) && tag(details) === 'details' ? hasAttribute(details, 'open') : null;
};

const fileCount = accessor(HTMLInputElement.prototype, 'files');
const unfilled = new Set(['checkbox', 'radio', 'submit', 'button', 'reset', 'image', 'range', 'color', 'hidden']);
const filled = (el) => {
  switch (tag(el)) {
    case 'input':
      if (unfilled.has(inputType(el))) return null;
      return inputType(el) === 'file' ? (fileCount(el)?.length ?? 0) > 0 : valueOf.input(el) !== '';
    case 'textarea': return valueOf.textarea(el) !== '';
    case 'select': return null;
  }
  return editable(el) || entryRoles.has(firstRole(el)) ? hasWriting(el) : null;
};
const hasWriting = (el) => {
  let nodes = 0;
  return !visit(el, (node) => (++nodes > 256 || (isText(node) && /[^\s\u200b\ufeff]/u.test(textOf(node))) ? STOP : { node }));
};

const optionsOf = accessor(HTMLSelectElement.prototype, 'options');
const options = (el) => {
  if (tag(el) !== 'select') return { list: [], more: 0 };
  const all = optionsOf(el);
  const list = [];
  for (let i = 0; i < all.length && i < MAX_OPTIONS; i++) {
    const option = all[i];
    list.push({ label: clip(collapse(option.label), 256), selected: option.selected, disabled: matches(option, ':disabled') });
  }
  return { list, more: Math.max(0, all.length - MAX_OPTIONS) };
};

const multiline = (el) => tag(el) === 'textarea' || yes(el, 'aria-multiline') === true || (isEditor(el) && yes(el, 'aria-multiline') !== false);
const readsOnly = (el) => truthy(el, 'aria-readonly') || (tag(el) === 'input' && readOnly(el)) || (tag(el) === 'textarea' && areaReadOnly(el));

// rows is how many rows the page says there are, shown or not.
const rows = (el) => {
  const count = (text) => (/^\d{1,9}$/u.test(text) ? Number(text) : 0);
  const stated = count(attr(el, 'aria-rowcount'));
  if (stated || !scrollers.has(el)) return stated;
  const inside = selectAll(el, '[aria-rowcount],[aria-setsize]')[0];
  return inside ? count(attr(inside, 'aria-rowcount')) || count(attr(inside, 'aria-setsize')) : 0;
};

// hint says what a nameless control looks like and where it stands.
const pictureTags = new Set(['svg', 'img', 'canvas', 'i', 'use']);
const plainWords = (text) => text.split(/[^\p{L}\p{N}]+|(?<=\p{Ll})(?=\p{Lu})/u).filter((w) => /^\p{L}{3,20}$/u.test(w) && !/^(css|svg|btn|wrapper|container)$/iu.test(w));
const wordsOf = (el) => {
  const source = localName(el) === 'img' ? attr(el, 'src').slice(-256).split(/[?#]/u)[0].split('/').at(-1).replace(/\.\w+$/u, '').slice(0, 64) : '';
  const link = localName(el) === 'use' ? (attr(el, 'href') || attr(el, 'xlink:href')).split('#').at(-1).slice(0, 64) : '';
  return plainWords(`${attr(el, 'class').slice(0, 256)} ${attr(el, 'id').slice(0, 64)} ${source} ${link} ${attr(el, 'data-icon').slice(0, 64)}`);
};
const nearText = (el) => {
  let up = parent(el);
  for (let hops = 0; up && isElement(up) && hops < 4; up = parent(up), hops++) {
    const read = readText(up, { nodes: 128, units: 1024, bytes: 512 });
    const text = collapse(read.prose.toString());
    if (text) return clip(text, 60);
  }
  return '';
};
const place = (el) => {
  const { left, top, width, height } = boxOf(el);
  if (top >= innerHeight) return 'below the view';
  if (top + height <= 0) return 'above the view';
  const third = (at, size, names) => names[Math.min(2, Math.max(0, Math.floor((3 * at) / size)))];
  const spot = `${third(top + height / 2, innerHeight, ['top', 'middle', 'bottom'])} ${third(left + width / 2, innerWidth, ['left', 'center', 'right'])}`;
  return spot === 'middle center' ? 'center' : spot;
};
const described = (el) => {
  for (const id of attr(el, 'aria-describedby').slice(0, 512).split(/\s+/u).filter(Boolean).slice(0, 4)) {
    const source = byId(el, id);
    const text = source && !holdsInput(source) ? writing(source) : '';
    if (text) return clip(text, 60);
  }
  return '';
};
const hint = (el) => {
  const looks = new Set();
  let nodes = 0;
  let shape = scrollers.has(el) ? 'scrolls' : localName(el);
  visit(el, (node) => {
    if (++nodes > 32) return STOP;
    if (!isElement(node)) return false;
    if (node !== el && pictureTags.has(localName(node)) && localName(node) !== 'use') shape = localName(node);
    for (const word of wordsOf(node)) looks.add(word.toLowerCase());
    return !scrollers.has(el);
  });
  const parts = [[shape, ...Array.from(looks).slice(0, 5)].join(' ')];
  const tip = described(el);
  if (tip) parts.push(`described "${tip}"`);
  const near = nearText(el);
  if (near && !holdsInput(el)) parts.push(`near "${near}"`);
  else if (near) parts.push(`by "${near}"`);
  parts.push(place(el));
  return clip(parts.join(', '), MAX_HINT);
};

// clipper makes a question: the nearest element around another that may cut
// parts of it off.
const clipper = () => {
  const nearest = climb((up) => {
    const name = tag(up);
    if (name === 'body' || name === 'html') return 'none';
    const style = styleOf(up);
    if (style.position === 'fixed') return 'none';
    return style.overflowX !== 'visible' || style.overflowY !== 'visible' ? up : null;
  });
  return (el) => {
    const up = parent(el);
    const found = up && isElement(up) && styleOf(el).position !== 'fixed' ? nearest(up) : null;
    return found === 'none' ? null : found;
  };
};

// cutOff is "away" when what is around the element cuts all of it off for
// good, and "scrolled" when a scroller does so until it is scrolled.
const cutOff = (el, around) => {
  const own = boxOf(el);
  if (own.right + scrollX <= 0 || own.bottom + scrollY <= 0) return 'away';
  let { left, top, right, bottom } = own;
  let scrolled = '';
  for (let up = around(el); up; up = around(up)) {
    const edge = boxOf(up);
    if (!hasBox(edge)) return 'away';
    const out = Math.min(right, edge.right) - Math.max(left, edge.left) < 1 || Math.min(bottom, edge.bottom) - Math.max(top, edge.top) < 1;
    const style = styleOf(up);
    const scrolls = clips.test(style.overflowX) || clips.test(style.overflowY);
    if (out && !scrolls) return 'away';
    if (out) scrolled = 'scrolled';
    ({ left, top, right, bottom } = out ? edge : {
      left: Math.max(left, edge.left), top: Math.max(top, edge.top), right: Math.min(right, edge.right), bottom: Math.min(bottom, edge.bottom),
    });
  }
  return scrolled;
};

// Some layouts make it slow to find what is at a point; an observation spends
// at most so long on it, in milliseconds, and an act asks again anyway.
const MAX_HITTING = 150;

// blocked says why a control cannot be used now. Whether something lies over it
// is known only where it is on screen.
const blocked = (el, around) => {
  const held = around.inert(el);
  if (held) return held;
  const own = boxOf(el);
  const off = own.right <= 0 || own.bottom <= 0 || own.left >= innerWidth || own.top >= innerHeight;
  if (!off) {
    if (around.hitting > MAX_HITTING) return '';
    const begun = performance.now();
    const reached = reachablePoint(el);
    around.hitting += performance.now() - begun;
    if (reached) return '';
  }
  const cut = cutOff(el, around.clipper);
  if (cut === 'away') return 'offscreen_clipped';
  return off || cut ? '' : 'covered';
};

// stateOf leaves out what does not apply, to keep the answer small.
const stateOf = (el, name, around) => {
  const state = {};
  const put = (key, value, off) => {
    if (value !== null && value !== off) state[key] = value;
  };
  put('expanded', yes(el, 'aria-expanded') ?? detailsOpen(el));
  put('selected', yes(el, 'aria-selected') ?? yes(el, 'aria-checked') ?? yes(el, 'aria-pressed'));
  put('filled', filled(el));
  put('required', requires(el), false);
  put('invalid', (hasAttribute(el, 'aria-invalid') && yes(el, 'aria-invalid') !== false) || matches(el, ':user-invalid'), false);
  put('readonly', readsOnly(el), false);
  put('multiline', multiline(el), false);
  put('scrolls', scrollers.has(el) || (isEditor(el) || tag(el) === 'textarea' ? false : isScroller(el, styleOf(el))), false);
  put('rows', rows(el), 0);
  put('blocked', blocked(el, around), '');
  put('hint', name ? '' : hint(el), '');
  const { list, more } = options(el);
  if (list.length) put('options', list);
  put('more_options', more, 0);
  return state;
};
