// Where one document meets what it cannot look into: frames, whose documents
// answer for themselves, and closed shadow roots, which the browser opens.

// isSuspect: an element that may have a closed root. A custom element may; any
// other host must show something that nobody put into it.
const asked = new WeakSet();
const hosts = new Set(['article', 'aside', 'blockquote', 'div', 'footer', 'header', 'main', 'nav', 'p', 'section', 'span']);
const isSuspect = (el, name) => {
  const custom = name.includes('-');
  if ((!custom && !hosts.has(name)) || !isHTML(el) || asked.has(el)) return false;
  if (custom) return true;
  if (firstElementIn(el)) return false;
  for (let child = firstChild(el); child; child = nextSibling(child)) if (isText(child) && /\S/u.test(textOf(child))) return false;
  return true;
};
const looksHosting = (el) => {
  if (tag(el).includes('-')) return true;
  const { width, height } = boxOf(el);
  if (width < 8 || height < 8) return false;
  const declared = method(Element.prototype, 'computedStyleMap')(el).get('height');
  return declared instanceof CSSKeywordValue && declared.value === 'auto'; // nothing it is made of gives it a height
};

// suspect remembers that the element has been asked about.
const suspect = (el) => {
  asked.add(el);
  return show(el);
};

// isBlankCanvas: a picture that the page draws and says nothing about.
const isBlankCanvas = (el) => visible(el) && boxOf(el).width >= 100 && boxOf(el).height >= 100 && !accessibleName(el) && !firstElement(el);

// shown are the elements that the browser itself has to look at.
let shown = {};
const show = (el) => {
  const number = numberOf(el);
  shown[number] = new WeakRef(el);
  return number;
};
const nodes = (wanted) => wanted.map((number) => shown[number]?.deref() ?? null);

// openRoots takes the closed roots of hosts.
const openRoots = (roots) => {
  for (const root of roots) if (root instanceof ShadowRoot) closedRoots.set(root.host, root);
  return roots.length;
};

const contentCorner = (el) => {
  const rect = box(el);
  const style = styleOf(el);
  const width = accessor(HTMLElement.prototype, 'offsetWidth')(el);
  const scale = width > 0 ? rect.width / width : 1;
  const edge = (side) => (Number.parseFloat(style[`border${side}Width`]) || 0) + (Number.parseFloat(style[`padding${side}`]) || 0);
  return { left: rect.left + scale * edge('Left'), top: rect.top + scale * edge('Top'), scale };
};

// through says where a point of a frame's document is in this one, brings it on
// screen, and refuses when something lies over it. armed makes this document
// let no input through to anything but the frame.
const through = async ({ number, x, y, types }) => {
  const el = shown[number]?.deref();
  if (!el || !isConnected(el) || ownerDocument(el) !== document) return refuse('gone');
  if (!visible(el)) return refuse('invisible');
  if (inertness(modals())(el)) return refuse('inert');
  const at = () => {
    const corner = contentCorner(el);
    return { x: corner.left + corner.scale * x, y: corner.top + corner.scale * y };
  };
  let spot = at();
  if (spot.x < 1 || spot.y < 1 || spot.x > innerWidth - 1 || spot.y > innerHeight - 1) {
    el.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' });
    spot = at();
    scrollBy({ left: spot.x < 1 || spot.x > innerWidth - 1 ? spot.x - innerWidth / 2 : 0, top: spot.y < 1 || spot.y > innerHeight - 1 ? spot.y - innerHeight / 2 : 0, behavior: 'instant' });
    spot = at();
  }
  if (!types) {
    // The browser sends an input to the frame that its last picture shows there.
    await nextFrame();
    await nextFrame();
    const now = at();
    if (Math.abs(now.x - spot.x) > 1 || Math.abs(now.y - spot.y) > 1) return { reason: 'moving', passing: true };
    spot = now;
  }
  if (hitAt(spot.x, spot.y) !== el) return { reason: 'covered', passing: true };
  if (types) arm(el, types);
  return spot;
};
