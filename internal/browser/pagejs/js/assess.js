// What a dispatch constraint is judged by: the live element as it is now
// (CONS-02), and for a selection every option that it could choose (CONS-03).
// What was judged is kept with the handle, and every later look at the element
// must find it so.
const MAX_READ_OPTIONS = 4096;
const MAX_MATCHES = 64;

// optionTexts are the texts of the options that the value could choose, or null
// when not all of them can be read.
const optionTexts = (el, value) => {
  const all = tag(el) === 'select' ? optionsOf(el) : [];
  if (all.length > MAX_READ_OPTIONS) return null;
  const wanted = collapse(value);
  const texts = new Set();
  let matches = 0;
  for (const option of all) {
    if (option.value !== value && collapse(option.label) !== wanted && collapse(option.text) !== wanted) continue;
    if (++matches > MAX_MATCHES) return null;
    for (const text of [option.label, option.value, option.text, textOfTree(option), accessibleName(option), attr(option, 'aria-label'), attr(option, 'title')]) texts.add(collapse(text));
    for (const up of ancestors(option)) {
      if (tag(up) === 'optgroup') for (const name of ['label', 'aria-label', 'title']) texts.add(collapse(attr(up, name)));
      if (up === el) break;
    }
  }
  texts.delete('');
  for (const text of texts) if (text.length > MAX_READ) return null;
  return Array.from(texts, (text) => text.toWellFormed());
};
const textOfTree = accessor(Node.prototype, 'textContent');

const reading = (el, { kind, value }) => {
  const said = told(el);
  return {
    said,
    facts: factsOf(el, said),
    options: kind === 'select' ? optionTexts(el, value ?? '') : [],
    disabled: disabled(el),
  };
};

const assess = (args) => {
  const found = fit(args);
  if (!found.el) return found;
  const { el, handle } = found;
  const now = reading(el, args);
  handle.judged = JSON.stringify(now);
  const { role, name, face, fieldKind, context } = now.said;
  return {
    role, name, fieldKind, context,
    text: face === name ? '' : clip(face, 256),
    disabled: now.disabled,
    facts: now.facts,
    options: now.options ?? [],
    partial: now.options === null,
    url: location.href,
  };
};

// asJudged: nothing has changed of what the constraint was judged by.
const asJudged = (el, handle, args) => handle.judged === JSON.stringify(reading(el, args));
