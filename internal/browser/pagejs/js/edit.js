// Putting text and choices into fields. A field's value is compared here and
// never leaves the page: the answer is yes or no.
const valueOf = {
  input: accessor(HTMLInputElement.prototype, 'value'),
  textarea: accessor(HTMLTextAreaElement.prototype, 'value'),
};
const setInput = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;

const activeElement = () => {
  let el = accessor(Document.prototype, 'activeElement')(document);
  while (el && shadowRoot(el) && shadowRoot(el).activeElement) el = shadowRoot(el).activeElement;
  return el;
};
const host = (el) => {
  let outer = el;
  for (const up of ancestors(el)) if (editable(up)) outer = up;
  return outer;
};

const focused = (el) => {
  const active = activeElement();
  return active === el || (editable(el) && active === host(el));
};
const takeFocus = (el) => {
  HTMLElement.prototype.focus.call(el, { preventScroll: false });
  if (!focused(el) && editable(el)) HTMLElement.prototype.focus.call(host(el));
  return focused(el);
};

const announce = (el) => {
  el.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  el.dispatchEvent(new Event('change', { bubbles: true }));
};

const written = (el, text) => {
  const lines = (s) => s.replace(/\r\n?/gu, '\n');
  if (valueOf[tag(el)]) return valueOf[tag(el)](el) === lines(text);
  const loose = (s) => lines(s).replace(/[\u00a0 \t]+/gu, ' ').replace(/ ?\n[\n ]*/gu, '\n').replace(/\u200b/gu, '').trim();
  return loose(accessor(HTMLElement.prototype, 'innerText')(el)) === loose(text);
};

const pickers = new Set(['date', 'time', 'month', 'week', 'datetime-local']);
const isPicker = (el) => tag(el) === 'input' && pickers.has(inputType(el));

const unwritable = (el, text) => {
  if (tag(el) === 'input') {
    if (/[\r\n]/u.test(text)) return 'one_line';
    if (isPicker(el)) {
      const trial = document.createElement('input');
      trial.type = inputType(el);
      trial.value = text;
      if (trial.value !== text) return 'not_a_date';
    }
  }
  if (!valueOf[tag(el)]) return '';
  const limit = tag(el) === 'input' ? accessor(HTMLInputElement.prototype, 'maxLength')(el) : accessor(HTMLTextAreaElement.prototype, 'maxLength')(el);
  return limit >= 0 && text.length > limit ? 'too_long' : '';
};

// holdsFocus: under a constraint the element itself, and nothing around it, has
// the focus (GUARD-03).
const holdsFocus = (el, { judged }) => (judged ? activeElement() === el : focused(el));

// focusFor gives the element the focus, and does nothing else: the page's own
// handlers may take long, or make it another thing.
const focusFor = (args) => {
  const found = fit(args);
  if (!found.el) return found;
  const { el } = found;
  const wrong = args.kind === 'type' ? unwritable(el, args.text) : '';
  if (wrong) return refuse(wrong);
  return takeFocus(el) && holdsFocus(el, args) ? { picker: args.kind === 'type' && isPicker(el) } : refuse('no_focus');
};

// stillFit looks again, just before the input, at what has the focus.
const stillFit = (args) => {
  const found = fit(args);
  return found.el && !holdsFocus(found.el, args) ? refuse('no_focus') : found;
};

const keyTypes = ['keydown', 'keypress', 'beforeinput'];

// prepare arms the guard for keys and text. For typing it selects what is
// there, so that the text replaces it.
const prepare = (args) => {
  const found = stillFit(args);
  if (!found.el) return found;
  const { el } = found;
  if (args.kind === 'type') {
    if (valueOf[tag(el)]) {
      (tag(el) === 'input' ? HTMLInputElement : HTMLTextAreaElement).prototype.select.call(el);
    } else {
      const range = new Range();
      range.selectNodeContents(el);
      const selection = getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
    }
  }
  arm(el, args.judged ? [...keyTypes, 'keyup', 'click'] : keyTypes, args);
  return {};
};

// fill gives a picker (a date, for example) its value at once.
const fill = (args) => {
  const found = stillFit(args);
  if (!found.el) return found;
  const { el } = found;
  const wrong = isPicker(el) ? unwritable(el, args.text) : 'changed';
  if (wrong) return refuse(wrong);
  Reflect.apply(setInput, el, [args.text]);
  announce(el);
  return {};
};

// confirmText waits at most 500 ms for the field to hold the text: a
// framework may draw it again from its own state.
const confirmText = async ({ revision, index, text }) => {
  const { blocked } = disarm();
  const el = handles.revision === revision ? handles.list[index]?.ref.deref() : null;
  if (blocked || !el) return false;
  for (let i = 0; i < 10; i++) {
    await nextFrame();
    if (isConnected(el) && written(el, text)) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
};

const confirmChecked = ({ revision, index }) => {
  const el = handles.revision === revision ? handles.list[index]?.ref.deref() : null;
  return Boolean(el) && isNativeChoice(el) && checkedState(el);
};

const optionsOfSelect = (el) => Array.from(accessor(HTMLSelectElement.prototype, 'options')(el)).slice(0, 4096);
const named = (option, value) => option.value === value || [collapse(option.label), collapse(option.text)].includes(collapse(value));

// kept looks once more when the page has settled, for a page may go back to
// what it had. An element that has left says nothing against the act.
const kept = ({ revision, index, kind, text, value }) => {
  const el = handles.revision === revision ? handles.list[index]?.ref.deref() : null;
  if (!el || !isConnected(el)) return true;
  switch (kind) {
    case 'type': return written(el, text);
    case 'check': return checkedState(el);
    case 'select': return optionsOfSelect(el).some((o) => o.selected && named(o, value));
  }
  return true;
};

// choose selects the option with the value, or else the only one with the
// label. That the options are still those that were shown is part of fit.
const choose = async (args) => {
  const found = stillFit(args);
  if (!found.el) return found;
  const { el } = found;
  const { value } = args;
  const options = optionsOfSelect(el);
  const free = options.filter((o) => !o.disabled && !(tag(parent(o) ?? o) === 'optgroup' && hasAttribute(parent(o), 'disabled')));
  const wanted = collapse(value);
  const byValue = free.filter((o) => o.value === value);
  const byLabel = free.filter((o) => collapse(o.label) === wanted || collapse(o.text) === wanted);
  const pick = byValue[0] ?? byLabel[0];
  if (!pick) return refuse('no_option');
  if (!byValue.length && byLabel.length > 1) return refuse('two_options');
  const before = options.filter((o) => o.selected);
  if (before.length === 1 && before[0] === pick) return { kept: true };
  for (const o of options) if (o.selected && o !== pick) o.selected = false;
  pick.selected = true;
  announce(el);
  await nextFrame();
  return { kept: isConnected(el) && pick.selected };
};
