// What a control is: role, kind of field, and whether it takes secrets
// (section 2.3, DENY-03).
const role = (el) => {
  const given = attr(el, 'role').trim().split(/\s+/u)[0].toLowerCase();
  if (given) return clip(given, 64);
  if (namespace(el) === SVG && localName(el) === 'a') return 'link';
  switch (tag(el)) {
    case 'a': case 'area': return 'link';
    case 'summary': return 'button';
    case 'img': return 'img';
    case 'label': { // stands for a control that cannot be seen
      const control = labelControl(el);
      return control ? role(control) : 'generic';
    }
    case 'button': return 'button';
    case 'select': return 'combobox';
    case 'textarea': return 'textbox';
    case 'input': {
      const type = inputType(el);
      if (type === 'checkbox' || type === 'radio') return type;
      return ['submit', 'button', 'reset', 'image'].includes(type) ? 'button' : 'textbox';
    }
  }
  return editable(el) ? 'textbox' : 'generic';
};

const personal = new Set(['name', 'given-name', 'additional-name', 'family-name', 'nickname', 'username',
  'street-address', 'postal-code', 'sex', 'email', 'impp', 'url', 'photo']);
const personalStem = /^(honorific-|organization|address-line|address-level|country|bday|tel)/u;

// byAutocomplete is the kind that the last meaningful autocomplete token names.
const byAutocomplete = (el) => {
  const tokens = attr(el, 'autocomplete').toLowerCase().split(/\s+/u).filter((t) =>
    t && !t.startsWith('section-') &&
    !['shipping', 'billing', 'home', 'work', 'mobile', 'fax', 'pager', 'on', 'off', 'webauthn'].includes(t));
  const last = tokens.at(-1);
  if (!last) return '';
  if (tokens.some((t) => t === 'current-password' || t === 'new-password')) return 'password';
  if (tokens.includes('one-time-code')) return 'one_time_code';
  if (/^(cc|transaction)-/u.test(last)) return 'payment';
  return personal.has(last) || personalStem.test(last) ? 'identity' : 'other';
};

const byType = {
  text: 'text', search: 'search', email: 'email', tel: 'telephone', url: 'url', number: 'number',
  date: 'date', time: 'date', month: 'date', week: 'date', 'datetime-local': 'date',
  password: 'password', file: 'file', checkbox: 'choice', radio: 'choice',
  submit: 'none', button: 'none', reset: 'none', image: 'none',
};

// Fields that were password fields once stay so when a page unmasks them.
const masked = new WeakSet();
const isMasked = (el) => {
  const style = styleOf(el);
  if ((tag(el) === 'input' && inputType(el) === 'password') || (style.webkitTextSecurity ?? 'none') !== 'none') {
    masked.add(el);
  }
  return masked.has(el);
};

// oneCharacter: one box of a row of four or more, each for one character of a code.
const singleBox = (el) => tag(el) === 'input' && attr(el, 'maxlength').trim() === '1' &&
  ['text', 'tel', 'number', 'password'].includes(inputType(el));
const oneCharacter = (el) => {
  if (!singleBox(el)) return false;
  let around = parent(el);
  for (let hops = 0; around && isElement(around) && hops < 3; around = parent(around), hops++) {
    let boxes = 0;
    for (const inner of method(Element.prototype, 'querySelectorAll')(around, 'input')) if (singleBox(inner)) boxes++;
    if (boxes >= 4) return true;
  }
  return false;
};

const fieldKind = (el) => {
  const name = tag(el);
  const isField = name === 'input' || name === 'textarea' || name === 'select';
  if (isField || editable(el)) {
    if (isMasked(el)) return 'password';
    if (oneCharacter(el)) return 'one_time_code';
    const named = byAutocomplete(el);
    if (named) return named;
  }
  if (name === 'select') return 'select';
  if (name === 'textarea') return 'multiline';
  if (name === 'input') return byType[inputType(el)] ?? 'other';
  if (editable(el)) return 'editable';
  if (['checkbox', 'radio', 'option', 'menuitemradio'].includes(role(el))) return 'custom_choice';
  return 'none';
};

const checkedState = accessor(HTMLInputElement.prototype, 'checked');
const isNativeChoice = (el) => tag(el) === 'input' && ['checkbox', 'radio'].includes(inputType(el));
