// Finding the live element behind a reference, and refusing it for a reason
// (CAP-06, OBS-01, CLK-01). Nothing here changes the page except scrolling.
const refuse = (reason) => ({ reason });

const live = (args) => {
  const { revision, index, kind, key } = args;
  if (!revision || revision !== handles.revision) return refuse('stale');
  const handle = handles.list[index];
  if (!handle) return refuse('unknown');
  const el = handle.ref.deref();
  if (!el || !isConnected(el) || ownerDocument(el) !== document) return refuse('gone');
  if (suits(el, kind, key) === 'credential') return refuse('credential');
  if (asIs(el, handle) !== handle.likeness || (handle.disabled && !disabled(el))) return refuse('changed');
  if (args.judged && !asJudged(el, handle, args)) return refuse('changed');
  return { el, handle };
};

const usable = (el) => {
  if (!visible(el)) return 'invisible';
  if (disabled(el)) return 'disabled';
  if (inertness(modals())(el)) return 'inert';
  return '';
};

const readOnly = accessor(HTMLInputElement.prototype, 'readOnly');
const areaReadOnly = accessor(HTMLTextAreaElement.prototype, 'readOnly');
const untypable = new Set(['checkbox', 'radio', 'submit', 'button', 'reset', 'image', 'file', 'hidden', 'range', 'color']);

// suits says whether the kind of act fits the element (section 2.4).
const suits = (el, kind, key) => {
  const name = tag(el);
  const secret = ['password', 'one_time_code'].includes(fieldKind(el));
  const field = name === 'input' || name === 'textarea' || name === 'select';
  const locked = attr(el, 'aria-readonly').trim().toLowerCase() === 'true' ||
    (name === 'input' && readOnly(el)) || (name === 'textarea' && areaReadOnly(el));
  switch (kind) {
    case 'type':
      if (secret) return 'credential';
      if (name === 'input' ? untypable.has(inputType(el)) : name !== 'textarea' && !editable(el)) return 'not_typable';
      return locked ? 'read_only' : '';
    case 'select':
      return name === 'select' ? (locked ? 'read_only' : '') : 'not_select';
    case 'check':
      return isNativeChoice(el) ? '' : 'not_choice';
    case 'press':
      return key === 'Space' && secret && (field || editable(el)) ? 'credential' : '';
    case 'click':
      for (const up of ancestors(el)) {
        if (tag(up) === 'a' && /^\s*(?!https?:|javascript:|blob:|data:|about:)[a-z][a-z0-9+.-]*:/iu.test(attr(up, 'href'))) return 'external';
        if (tag(up) === 'input' && inputType(up) === 'file') return 'file';
      }
      return '';
  }
  return '';
};

// fit is live, and whether the act can be done to the element now. Everything
// that the page may have done meanwhile is looked at again by it.
const fit = (args) => {
  const found = live(args);
  if (!found.el) return found;
  const unusable = usable(found.el);
  if (unusable && !(args.kind === 'scroll' && unusable === 'disabled')) return { reason: unusable, passing: true };
  const unsuited = suits(found.el, args.kind, args.key);
  return unsuited ? refuse(unsuited) : found;
};

// inView is the part of a box that is on screen, or null.
const inView = (rect) => {
  const left = Math.max(rect.left, 0);
  const top = Math.max(rect.top, 0);
  const right = Math.min(rect.right, innerWidth);
  const bottom = Math.min(rect.bottom, innerHeight);
  return right - left >= 1 && bottom - top >= 1 ? { left, top, right, bottom } : null;
};
// aims are the points of a box at which a click is tried: its middle first.
const aims = [[0.5, 0.5], [0.15, 0.5], [0.85, 0.5], [0.5, 0.2], [0.5, 0.8], [0.1, 0.15], [0.9, 0.15], [0.1, 0.85], [0.9, 0.85]];

// point is the middle of the first part of the element that is on screen.
const point = (el) => {
  for (const rect of [...boxes(el), ...contentBoxes(el)]) {
    const part = inView(rect);
    if (part) return { x: (part.left + part.right) / 2, y: (part.top + part.bottom) / 2, whole: rect };
  }
  return null;
};

// reachablePoint is a point at which a click meets the element, or null; for a
// wheel it is enough that it turns over something in it.
const reachablePoint = (el, wheel = false) => {
  let tries = 0;
  for (const rect of [...boxes(el), ...contentBoxes(el)]) {
    const part = inView(rect);
    if (!part) continue;
    for (const [across, down] of aims) {
      if (++tries > 27) return null;
      const x = part.left + across * (part.right - part.left);
      const y = part.top + down * (part.bottom - part.top);
      const hit = hitAt(x, y);
      if (hit && (wheel ? within(hit, el) && !framed(hit) : reaches(hit, el))) return { x, y, hit, whole: rect };
    }
  }
  return null;
};
// A display:contents element has no box; its children's boxes stand for it.
const contentBoxes = (el) => {
  if (styleOf(el).display !== 'contents') return [];
  const range = new Range();
  range.selectNodeContents(el);
  return range.getClientRects();
};

const hitAt = (x, y) => {
  let hit = Document.prototype.elementFromPoint.call(document, x, y);
  while (hit && shadowRoot(hit)) {
    const inner = shadowRoot(hit).elementFromPoint(x, y);
    if (!inner || inner === hit) break;
    hit = inner;
  }
  return (hit && shadowRoot(hit) && shownBy(hit, x, y)) || hit;
};
// shownBy is the slot that shows the text of a host at a point: what is around
// the slot takes the click on it.
const shownBy = (el, x, y) => {
  for (let child = firstChild(el); child; child = nextSibling(child)) {
    if (!isText(child)) continue;
    const range = new Range();
    range.selectNodeContents(child);
    for (const r of range.getClientRects()) if (x >= r.left && x <= r.right && y >= r.top && y <= r.bottom) return parent(child);
  }
  return null;
};

// framed: a click on it goes to a document that cannot be looked at from here.
const framed = (hit) => ['iframe', 'frame', 'object', 'embed', 'fencedframe'].includes(tag(hit));

// takesClicks: a control of its own. A role that nobody knows makes none.
const takesClicks = (el) => isSurface(el) || (isControl(el) && (listedTags.has(tag(el)) || ariaRoles.has(firstRole(el)) || !hasAttribute(el, 'role') || takesInput(el)));

// reaches: the first thing that takes clicks, from what is hit outwards, is the
// element or a label that passes the click on to it.
const reaches = (hit, el) => {
  if (framed(hit)) return false;
  for (const up of ancestors(hit)) {
    if (up === el) return true;
    if (tag(up) === 'label' && labelControl(up)) return labelControl(up) === el;
    if (takesClicks(up)) return false;
  }
  return false;
};

// possibleHosts are the elements from what is hit to the element that may have
// closed roots in which something else takes the click.
const possibleHosts = (hit, el) => {
  const found = [];
  for (const up of ancestors(hit)) {
    const name = tag(up);
    if (!shadowRoot(up) && (name.includes('-') || hosts.has(name) || /^h[1-6]$/u.test(name))) found.push(show(up));
    if (up === el) break;
  }
  return found;
};

const nextFrame = () => new Promise((resolve) => {
  const timer = setTimeout(resolve, 100);
  requestAnimationFrame(() => {
    clearTimeout(timer);
    resolve();
  });
});

// locate prepares an act: it answers with the point to aim at, or with the
// reason why not. Reasons that may pass by themselves are marked.
const locate = async (args) => {
  const found = fit(args);
  if (!found.el) return found;
  const { el, handle } = found;
  const { kind } = args;
  if (rowOf(el) !== handle.row) return refuse('changed');
  if (kind === 'check' && checkedState(el)) return { done: true };
  if (kind === 'type' || kind === 'select' || kind === 'press') return { done: false };

  let at = point(el);
  if (!at || at.y < 1 || at.x < 1 || at.whole.bottom > innerHeight || at.whole.top < 0 || !reachablePoint(el, kind === 'scroll')) {
    el.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
  }
  at = point(el);
  if (!at) return { reason: 'invisible', passing: true };
  await nextFrame();
  const again = point(el);
  if (!isConnected(el)) return refuse('gone');
  if (!again || Math.abs(again.x - at.x) > 1 || Math.abs(again.y - at.y) > 1) return { reason: 'moving', passing: true };
  if (styleOf(el).pointerEvents === 'none') return { reason: 'no_pointer', passing: true };
  const spot = reachablePoint(el, kind === 'scroll');
  if (!spot) return { reason: 'covered', passing: true };
  return { done: false, x: spot.x, y: spot.y };
};
