// One observation in one pass over the flat tree (OBS-01 to OBS-06, CAP-04,
// CAP-05). Handles live here, in the isolated world, and only for the newest
// revision.
const MAX_CANDIDATES = 4096;
const MAX_ELEMENTS = 256;
const MAX_NODES = 200000;
const MAX_DEPTH = 1024;

let handles = { revision: '', list: [] };

const isCandidate = (el) =>
  ['a', 'button', 'input', 'select', 'textarea'].includes(tag(el)) || hasAttribute(el, 'role') ||
  (isHTML(el) && hasAttribute(el, 'contenteditable') && editable(el));

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

const observe = (args) => {
  const { revision, focus, challenges } = args;
  const root = focus ? regionRoot(focus) : document;
  forget();
  if (challenges && challenged()) return { challenged: true };
  if (!root) return { gone: true };
  const dialog = root === document ? openDialog() : null;
  const kept = [];
  let candidates = 0;
  let nodes = 0;
  let more = false;

  const walk = (node, depth) => {
    if (node === dialog && depth > 0) return; // was walked first
    if (++nodes > MAX_NODES || depth > MAX_DEPTH) {
      more = true;
      return;
    }
    if (isText(node)) return;
    if (isElement(node)) {
      if (noText.has(tag(node))) return;
      const style = styleOf(node);
      if (style.display === 'none') return;
      if (isCandidate(node)) {
        if (++candidates > MAX_CANDIDATES) more = true;
        else if (visible(node, style)) {
          if (kept.length < MAX_ELEMENTS) kept.push(node);
          else more = true;
        }
      }
    }
    for (const child of children(node)) walk(child, depth + 1);
  };

  if (dialog) walk(dialog, 0);
  walk(root, 1);

  const open = modals();
  const elements = kept.map((el) => describe(el, open));
  handles = { revision, list: kept.map((el, i) => ({ ref: new WeakRef(el), role: elements[i].role, name: elements[i].name })) };
  const title = accessor(Document.prototype, 'title')(document);
  return {
    url: location.href,
    title: clip(collapse(title), 1024),
    elements,
    more,
    ...collectExtras(args, root),
  };
};

const forget = () => {
  handles = { revision: '', list: [] };
  dropRegions();
  return null;
};
