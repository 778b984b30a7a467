// Whether an element is still what its owner was shown (OBS-01, CAP-06). A node
// that a page uses again for something else is another thing.
const linkTarget = accessor(HTMLAnchorElement.prototype, 'href');
const areaTarget = accessor(HTMLAreaElement.prototype, 'href');
const formAction = accessor(HTMLFormElement.prototype, 'action');
const formMethod = accessor(HTMLFormElement.prototype, 'method');
const formOwner = {
  button: accessor(HTMLButtonElement.prototype, 'form'),
  input: accessor(HTMLInputElement.prototype, 'form'),
  select: accessor(HTMLSelectElement.prototype, 'form'),
  textarea: accessor(HTMLTextAreaElement.prototype, 'form'),
};

const choices = (el) => {
  if (tag(el) !== 'select') return [];
  return Array.from(optionsOf(el)).slice(0, 4096).map((o) => [clip(o.value, 256), clip(collapse(o.label), 256)]);
};

// faceless: what is in the element is a part of the page and no face of its own.
const faceless = (el) => scrollers.has(el) || structureRoles.has(firstRole(el));

// told is what is said of an element to its owner.
const told = (el, dialog = dialogOf(el), nameOf = dialogName) => ({
  role: role(el),
  name: accessibleName(el),
  face: faceless(el) ? '' : caption(el),
  fieldKind: fieldKind(el),
  context: dialog ? nameOf(dialog) : '',
});

// leadsTo is where the element leads or sends, and what labels it. Of one
// without a face only what is around it counts: its inside may live.
const leadsTo = (el, facts) => {
  if (!facts || !faceless(el)) return facts;
  const { visible_text: _, ...labels } = facts.labels;
  const outer = enclosing(el, effort());
  return { labels, links: outer.links.flatMap(addressesOf), forms: outer.forms.map((form) => sentTo(form, null)) };
};

// likeness is all of the element that an approval may rest on, as a text to
// compare. It never leaves the page.
const likeness = (el, said, facts) => JSON.stringify([location.href.split('#')[0], said.role, said.name, clip(said.face, 1024), said.fieldKind,
  said.context, leadsTo(el, facts), readsOnly(el), choices(el)]);

// rowOf is what the row around an element says first. Controls and times are
// left out: they count on while the row stays the same.
const rowTags = new Set(['li', 'tr', 'article']);
const rowRoles = new Set(['row', 'listitem', 'article', 'option', 'treeitem']);
const restless = (el) => ['button', 'time', 'input', 'select'].includes(tag(el)) || hasAttribute(el, 'aria-live') ||
  ['button', 'timer', 'status', 'progressbar', 'log', 'toolbar'].includes(firstRole(el));
const rowText = (row) => readText(row, { nodes: 128, units: 1024, bytes: 256 }, { skip: restless }).prose.toString();
const rowOf = (el, read = rowText) => {
  for (let up = parent(el); up && isElement(up); up = parent(up)) if (rowTags.has(tag(up)) || rowRoles.has(firstRole(up))) return read(up);
  return '';
};

// asShown is kept with a handle, to compare with later. Without facts the
// observation had no time for them, and they are not compared.
const asShown = (el, said, facts, read) =>
  ({ ref: new WeakRef(el), likeness: likeness(el, said, facts), facts: facts !== null, row: rowOf(el, read), disabled: disabled(el) });

// asIs is the likeness of the element behind a handle as it is now.
const asIs = (el, handle) => {
  const said = told(el);
  return likeness(el, said, handle.facts ? factsOf(el, said) : null);
};
