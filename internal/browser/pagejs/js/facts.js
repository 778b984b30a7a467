// Element facts (FACT-01 to FACT-10): every source of a label, and every
// address that a click on the element may lead to, over the flat tree and
// within bounds. What passes a bound is opaque. The addresses are for the
// driver, which tells nobody (FACT-05).
const MAX_LABEL = 256;
const MAX_READ = 1024; // units read of one label source (FACT-04)
const MAX_AROUND = 256;
const MAX_INSIDE = 2048;
const MAX_TARGETS = 64; // links, and forms
const MAX_TOGGLES = 16;
const MAX_PICTURES = 8;
const MAX_COPIED = 2048; // nodes of what an SVG use copies
const MAX_ADDRESS = 4096;

// MAX_EFFORT bounds the nodes that are looked at for the facts of one
// observation; elements after it have none.
const MAX_EFFORT = 16384;

// effort is what the facts of one observation share.
const effort = () => ({ nodes: 0, around: new Map(), defaults: new Map(), copies: new Map() });

const baseURI = accessor(Node.prototype, 'baseURI');
const resolve = (raw) => {
  try {
    return new URL(raw, baseURI(document)).href;
  } catch {
    return 'unreadable:';
  }
};
const withoutFragment = (address) => address.split('#', 1)[0];

// SVG links and uses have a written and an animated address; both count (FACT-07).
const svgAddress = [SVGAElement, SVGUseElement].map((of) => accessor(of.prototype, 'href'));
const svgValues = ['baseVal', 'animVal'].map((name) => accessor(SVGAnimatedString.prototype, name));
const svgAddresses = (el, use) => {
  const animated = svgAddress[use ? 1 : 0](el);
  return svgValues.map((read) => read(animated));
};
const isSVGLink = (el) => el instanceof SVGAElement;

// addressesOf are those of a link, without one that stays on the page.
const addressesOf = (el) => {
  let written;
  if (isSVGLink(el)) written = hasAttribute(el, 'href') || hasAttribute(el, 'xlink:href') || svgAddresses(el).some(Boolean) ? svgAddresses(el).map(resolve) : [];
  else if (!hasAttribute(el, 'href')) written = [];
  else written = [tag(el) === 'a' ? linkTarget(el) : areaTarget(el)];
  return written.filter((address) => withoutFragment(address) !== withoutFragment(location.href));
};

// Where a form is sent: as the submit control says that is used, or else as
// the form says (FACT-06). A form that only closes a dialog is sent nowhere.
const submitAction = { button: accessor(HTMLButtonElement.prototype, 'formAction'), input: accessor(HTMLInputElement.prototype, 'formAction') };
const submitMethod = { button: accessor(HTMLButtonElement.prototype, 'formMethod'), input: accessor(HTMLInputElement.prototype, 'formMethod') };
const buttonType = accessor(HTMLButtonElement.prototype, 'type');
const isSubmit = (el) => (tag(el) === 'button' ? buttonType(el) === 'submit' : tag(el) === 'input' && ['submit', 'image'].includes(inputType(el)));

const sentTo = (form, submit) => {
  const method = submit && hasAttribute(submit, 'formmethod') ? submitMethod[tag(submit)](submit) : formMethod(form);
  if (method === 'dialog') return '';
  return `${method} ${submit && hasAttribute(submit, 'formaction') ? submitAction[tag(submit)](submit) : formAction(form)}`;
};

// defaultButton is the first submit control of a form, in the form's own tree.
const defaultButton = (form, work) => {
  if (!work.defaults.has(form)) {
    const all = selectAll(rootOf(form), 'button,input');
    let found = null;
    for (let i = 0; i < all.length && i < 4096 && !found; i++) if (isSubmit(all[i]) && formOwner[tag(all[i])](all[i]) === form) found = all[i];
    work.defaults.set(form, { submit: found, whole: all.length <= 4096 });
  }
  return work.defaults.get(form);
};

// ownForm is the form that an element names or is owned by.
const ownForm = (el) => {
  const owner = formOwner[tag(el)];
  if (owner) return owner(el);
  if (!hasAttribute(el, 'form') || !localName(el).includes('-')) return null;
  const named = byId(el, attr(el, 'form'));
  return named && tag(named) === 'form' ? named : null;
};

// Found is what was found for one element.
class Found {
  links = new Set();
  submits = new Set();
  labels = new Set();
  toggles = new Set();
  pictures = [];
  words = '';
  cut = false;
  opaque = false;
  download = false;

  link(el) {
    for (const address of addressesOf(el)) this.links.add(clip(address, MAX_ADDRESS + 1));
    if (hasAttribute(el, 'download') && (isSVGLink(el) || hasAttribute(el, 'href'))) this.download = true;
    if (this.links.size > MAX_TARGETS) this.opaque = true;
  }

  submit(el) {
    const form = formOwner[tag(el)](el);
    if (form) this.submits.add(el);
    if (this.submits.size > MAX_TARGETS) this.opaque = true;
  }

  toggle(el) {
    if (!isNativeChoice(el)) return;
    if (this.toggles.size === MAX_TOGGLES && !this.toggles.has(el)) this.opaque = this.cut = true;
    else this.toggles.add(el);
  }
}

// enclosing is what encloses an element, itself included: links, forms, labels
// and submit controls, and how deep it is. Siblings share it.
const nothing = { depth: 0, links: [], forms: [], labels: [], submits: [] };
const enclosing = (el, work) => {
  const path = [];
  let known = nothing;
  for (let up = el; up && isElement(up); up = parent(up)) {
    const done = work.around.get(up);
    if (done) {
      known = done;
      break;
    }
    path.push(up);
    if (path.length > MAX_INSIDE) break;
  }
  work.nodes += path.length;
  if (path.length > MAX_INSIDE) return { ...nothing, depth: MAX_INSIDE };
  while (path.length) {
    const up = path.pop();
    const name = tag(up);
    known = { ...known, depth: known.depth + 1 };
    if (name === 'a' || name === 'area' || (!name && isSVGLink(up))) known.links = [...known.links, up];
    else if (name === 'label') known.labels = [...known.labels, up];
    else if (name === 'form') known.forms = [...known.forms, up];
    else if (formOwner[name] || name.includes('-')) {
      const form = ownForm(up);
      if (form && !known.forms.includes(form)) known.forms = [...known.forms, form];
      if (isSubmit(up)) known.submits = [...known.submits, up];
    }
    work.around.set(up, known);
  }
  return known;
};

// copies: what an SVG use shows may hold a link or a document, or is not of
// this document (FACT-10).
const copies = (use, work) => svgAddresses(use, true).some((address) => {
  if (!address) return false;
  if (!address.startsWith('#')) return true;
  let id = address.slice(1);
  try {
    id = decodeURIComponent(id);
  } catch {
    return true;
  }
  const source = byId(use, id) ?? byId(use, address.slice(1));
  if (!source) return false;
  if (!work.copies.has(source)) {
    let nodes = 0;
    const plain = visit(source, (node) => {
      if (++nodes > MAX_COPIED) return STOP;
      if (!isElement(node)) return false;
      return isSVGLink(node) || ['a', 'use', 'foreignObject', 'image', 'script', 'iframe', 'object', 'embed'].includes(localName(node)) ? STOP : { node };
    });
    work.nodes += nodes;
    work.copies.set(source, !plain);
  }
  return work.copies.get(source);
});

const embedding = new Set(['iframe', 'frame', 'object', 'embed', 'fencedframe', 'portal']);
const entryTags = new Set(['input', 'textarea', 'select', 'datalist']); // what is in them is entered or chosen
const wordless = new Set(['script', 'style', 'noscript', 'template', 'audio', 'video', 'canvas']);
const listedIn = (el) => {
  const name = tag(el);
  return name === 'slot' && !shadowRoot(el) ? assignedNodes(el) : [];
};

// inside walks what is in the element. text says that its words count: those
// that are shown, whoever may read them, and nothing that was entered.
const inside = (root, found, work, text = true) => {
  let nodes = 0;
  const step = (node, silent, shown) => {
    if (found.opaque && found.cut) return;
    if (++nodes > MAX_INSIDE) {
      found.opaque = found.cut = true;
      return;
    }
    const type = nodeType(node);
    if (type === 3) {
      const data = textOf(node);
      if (silent || !/\S/u.test(data) || !shown()) return;
      if (found.words.length + data.length > MAX_READ) found.cut = true;
      found.words += `${data.slice(0, MAX_READ)} `;
    } else if (type === 1) element(node, silent, false);
  };
  const element = (el, silent, first) => {
    const name = tag(el);
    let visibly = first ? true : null;
    const shown = () => (visibly ??= rendered(el, shownStyle) || styleOf(el).display === 'contents');
    switch (name) {
      case '':
        if (isSVGLink(el)) found.link(el);
        else if (localName(el) === 'use' && copies(el, work)) found.opaque = true;
        break;
      case 'a': case 'area':
        found.link(el);
        break;
      case 'label':
        found.labels.add(el);
        break;
      case 'button': case 'input':
        if (isSubmit(el)) found.submit(el);
        else if (!first) found.toggle(el);
    }
    if (embedding.has(name) || ((name === 'img' || name === 'input') && hasAttribute(el, 'usemap'))) found.opaque = true;
    if (text && (name === 'img' || name === 'input') && attr(el, 'alt').trim() && (name === 'img' || inputType(el) === 'image') && shown()) {
      if (found.pictures.length === MAX_PICTURES) found.cut = true;
      else found.pictures.push(el);
    }
    if (embedding.has(name) || entryTags.has(name)) return;
    const quiet = silent || wordless.has(name) || (firstChild(el) !== null || shadowRoot(el) !== null) && holdsInput(el);
    const assigned = listedIn(el);
    if (assigned.length) for (const child of assigned) step(child, quiet, shown);
    else for (let child = firstChild(shadowRoot(el) ?? el); child; child = nextSibling(child)) step(child, quiet, shown);
  };
  element(root, !text, true);
  work.nodes += nodes;
};

// wordsOfLabel are the words of an element that labels another.
const wordsOfLabel = (el, found, work) => {
  const part = new Found();
  inside(el, part, work);
  if (part.cut) found.cut = true;
  return [part.words, ...part.pictures.map((picture) => attr(picture, 'alt').slice(0, MAX_READ))].join(' ');
};

const nativeLabels = (el) => Array.from(formLabels[tag(el)]?.(el) ?? []);
const references = (el) => attr(el, 'aria-labelledby').split(/\s+/u).filter(Boolean).length;

// labelsOf are the label sources of an element that read otherwise than its
// name and the text that is told of it.
const labelsOf = (el, said, found, work) => {
  const sources = {};
  const told = new Set([collapse(said.name), collapse(said.face)]);
  const put = (source, text) => {
    if (!text) return;
    if (text.length > MAX_READ) found.cut = true;
    const words = collapse(text.slice(0, 4 * MAX_READ));
    if (!words || told.has(words)) return;
    const kept = clip(words, MAX_LABEL);
    if (kept.length < words.length) found.cut = true;
    sources[source] = kept;
  };
  const name = tag(el);
  put('aria_label', attr(el, 'aria-label'));
  if (hasAttribute(el, 'aria-labelledby')) {
    if (references(el) > 8 || attr(el, 'aria-labelledby').length > MAX_READ) found.cut = true;
    put('aria_labelledby', labelledBy(el));
  }
  put('title', attr(el, 'title'));
  put('placeholder', [attr(el, 'placeholder'), attr(el, 'aria-placeholder')].filter(Boolean).join(' '));
  put('alt', [name === 'area' ? attr(el, 'alt') : '', ...found.pictures.map((picture) => attr(picture, 'alt'))].filter(Boolean).join(' '));
  if (name === 'button') put('value', attr(el, 'value'));
  if (name === 'input' && ['submit', 'button', 'reset', 'image'].includes(inputType(el))) put('value', attr(el, 'value') || (faces[inputType(el)] ?? ''));
  const labels = new Set([...nativeLabels(el), ...enclosing(el, work).labels]);
  labels.delete(el);
  const texts = [];
  for (const toggle of found.toggles) {
    texts.push(attr(toggle, 'aria-label'), hasAttribute(toggle, 'aria-labelledby') ? labelledBy(toggle) : '', attr(toggle, 'title'));
    for (const one of nativeLabels(toggle)) if (one !== el) labels.add(one);
  }
  if (labels.size > MAX_TOGGLES) found.cut = true;
  for (const one of Array.from(labels).slice(0, MAX_TOGGLES)) texts.push(wordsOfLabel(one, found, work));
  put('label', texts.map(collapse).filter(Boolean).join(' '));
  put('visible_text', found.words);
  const long = (text, most) => text.length >= most && clip(text, most).length >= most;
  if (long(said.name, MAX_NAME) || (collapse(said.face) !== collapse(said.name) && long(said.face, MAX_LABEL + 1))) found.cut = true;
  return sources;
};

// factsOf are the facts of an element of which that much is said already, or
// null when the effort of the observation is spent.
const factsOf = (el, said, work = effort()) => {
  if (work.nodes > MAX_EFFORT) return null;
  const found = new Found();
  const starts = new Set([el]);
  // A scroller is here to be scrolled; what is in it is most of the page.
  if (scrollers.has(el)) found.opaque = found.cut = true;
  else inside(el, found, work, !holdsInput(el));
  for (const label of [...enclosing(el, work).labels, ...found.labels]) {
    const control = labelControl(label);
    if (!control || starts.has(control)) continue;
    starts.add(control);
    found.toggle(control);
    if (isSubmit(control)) found.submit(control);
    if (starts.size > MAX_TARGETS) {
      found.opaque = true;
      break;
    }
  }
  const forms = new Set();
  for (const start of starts) {
    const outer = enclosing(start, work);
    if (outer.depth > MAX_AROUND) found.opaque = true;
    for (const link of outer.links) found.link(link);
    for (const submit of outer.submits) found.submit(submit);
    for (const form of outer.forms) forms.add(form);
  }
  const sent = new Set();
  for (const submit of found.submits) {
    const form = formOwner[tag(submit)](submit);
    sent.add(sentTo(form, submit));
    forms.delete(form);
  }
  for (const form of forms) { // Enter, or the page itself, may send it
    const { submit, whole } = defaultButton(form, work);
    if (!whole) found.opaque = true;
    if (submit) sent.add(sentTo(form, submit));
    if (!submit || !entryTags.has(tag(el))) sent.add(sentTo(form, null));
  }
  sent.delete('');
  if (sent.size > MAX_TARGETS) found.opaque = true;
  const labels = labelsOf(el, said, found, work);
  return {
    labels,
    cut: found.cut,
    links: Array.from(found.links).slice(0, MAX_TARGETS),
    forms: Array.from(sent, (address) => clip(address, MAX_ADDRESS + 8)).slice(0, MAX_TARGETS),
    opaque: found.opaque,
    download: found.download,
  };
};
