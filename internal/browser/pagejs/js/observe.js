// One observation in one pass over the flat tree (OBS-01 to OBS-06, CAP-04,
// CAP-05). Handles live here, in the isolated world, and only for the newest
// revision.
let handles = { revision: '', list: {} };

const describe = (el, around, { role, name, face, fieldKind, context }) => {
  const choice = isNativeChoice(el) ? el : tag(el) === 'label' && labelControl(el) && isNativeChoice(labelControl(el)) ? labelControl(el) : null;
  const held = around.inert(el);
  return {
    role,
    name,
    disabled: disabled(el, around.disabled) || held !== '',
    checked: choice ? checkedState(choice) : null,
    fieldKind,
    text: face === name ? '' : clip(face, 256),
    context,
    state: stateOf(el, name, around),
  };
};

// once answers a question about an element once.
const once = (ask) => {
  const known = new Map();
  return (el) => {
    if (!known.has(el)) known.set(el, ask(el));
    return known.get(el);
  };
};

const frameEntry = (el, around) => ({
  title: clip(collapse(attr(el, 'title') || label(el) || attr(el, 'name')), 128),
  blocked: blocked(el, around),
});

const observe = (args) => inPass(() => {
  const { revision, focus, challenges, offset = 0, anchor = 0, specified = false } = args;
  const begun = performance.now();
  const root = focus ? regionRoot(focus) : document;
  forget();
  if (challenges && challenged()) return { challenged: true };
  if (!root) return { gone: true };
  const outline = new Outline(root, offset + MAX_WINDOW + 1, specified);
  const surveyed = performance.now();
  const window = select(outline, root, offset, anchor);
  if (window.moved) return { moved: true };
  const selected = performance.now();
  const around = { hitting: 0, effort: effort(), inert: inertness(modals()), clipper: clipper(), disabled: disabledAround(), dialog: climb((el) => (isDialog(el) ? el : null)), dialogName: once(dialogName), row: once(rowText) };
  const list = {};
  const entries = window.kept.map(({ el, position }) => {
    if (isFrame(el)) return { number: show(el), position, frame: frameEntry(el, around) };
    const number = numberOf(el);
    const said = told(el, around.dialog(el), around.dialogName);
    const facts = factsOf(el, said, around.effort);
    list[number] = asShown(el, said, facts, around.row);
    return { number, position, ...describe(el, around, said), facts };
  });
  const described = performance.now();
  handles = { revision, list };
  const title = accessor(Document.prototype, 'title')(document);
  const extras = collectExtras(args, root);
  const ended = performance.now();
  return {
    url: location.href,
    origin: self.origin,
    title: clip(collapse(title), 1024),
    entries,
    scanned: window.scanned,
    limited: window.limited,
    next: window.next,
    unread: Array.from(outline.unread),
    suspects: outline.suspects.map(suspect),
    ...extras,
    cost: { survey: surveyed - begun, select: selected - surveyed, describe: described - selected, extras: ended - described, visited: outline.visited },
  };
});

const forget = () => {
  handles = { revision: '', list: {} };
  shown = {};
  dropRegions();
  return null;
};
