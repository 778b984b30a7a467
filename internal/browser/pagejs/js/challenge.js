// Is something on screen that only the user can answer (section 2.5)?
const phrases = /use (a )?passkey|verification code|multi-factor|two-factor|consent required/iu;
const captcha = /captcha/iu;

const asksCredential = (el) => tag(el) === 'input' &&
  (inputType(el) === 'password' || attr(el, 'autocomplete').toLowerCase().split(/\s+/u).includes('one-time-code'));

// The passive badge only says that a score is kept; a person is asked nothing
// by it (CHAL-02).
const isBadge = (el) => attr(el, 'class').split(/\s+/u).includes('grecaptcha-badge');

const asking = (el) => ['form', 'dialog', 'button'].includes(tag(el)) || ['form', 'dialog', 'alertdialog', 'button'].includes(firstRole(el));

const shownText = (node) => {
  const around = parent(node);
  return textHasBox(node) && (!isElement(around) || rendered(around, { opacityProperty: true, visibilityProperty: true }));
};

// Only these can ask, or be what a question stands in; the rest of a page is
// passed by. One native query finds them.
const askingSelector = 'input,form,dialog,button,script,style,noscript,template,[role],[id*="captcha" i],[class*="captcha" i],' +
  'iframe[src*="captcha" i],iframe[title*="captcha" i],.grecaptcha-badge';

// challenged is the bounded question that precedes every reading of a leased
// page. No is negative evidence within the bound, and proves no sign-in.
const challenged = () => {
  const possible = new Set(selectAll(document, askingSelector));
  const plain = { asking: false, badge: false };
  let nodes = 0;
  let found = false;
  visit(document, (node, around = plain) => {
    if (++nodes > MAX_SCAN) return STOP;
    if (isText(node)) {
      if (around.asking && phrases.test(collapse(textOf(node).slice(0, 512))) && shownText(node)) found = true;
      return found ? STOP : false;
    }
    if (!isElement(node)) return around;
    const shadow = shadowRoot(node);
    if (shadow) for (const el of selectAll(shadow, askingSelector)) possible.add(el);
    if (!possible.has(node)) return around;
    if (['script', 'style', 'noscript', 'template'].includes(tag(node))) return false;
    const badge = around.badge || isBadge(node);
    const marks = `${attr(node, 'id')} ${attr(node, 'class')} ${tag(node) === 'iframe' ? `${attr(node, 'src')} ${attr(node, 'title')}` : ''}`;
    if ((asksCredential(node) || (!badge && captcha.test(marks))) && visible(node)) {
      found = true;
      return STOP;
    }
    return { asking: around.asking || asking(node), badge };
  });
  return found;
};

// wholeChallenge is the ceremony's: the badge counts, phrases count anywhere,
// and a page that is too big to clear counts as one that asks.
const wholeChallenge = () => {
  let nodes = 0;
  let tail = ''; // a phrase may be split over neighbouring elements
  let found = false;
  const whole = visit(document, (node, around) => {
    if (++nodes > MAX_NODES) return STOP;
    if (isText(node)) {
      const text = textOf(node);
      if (around?.hidden || !/\S/u.test(text) || !textHasBox(node)) return false;
      tail = collapse(`${tail} ${text}`).slice(-(text.length + 64));
      found = phrases.test(tail);
      return found ? STOP : false;
    }
    if (!isElement(node)) return { hidden: false };
    if (['script', 'style', 'noscript', 'template'].includes(tag(node))) return false;
    const style = styleOf(node);
    if (style.display === 'none') return false;
    const secret = ['input', 'textarea'].includes(tag(node)) && ['password', 'one_time_code'].includes(fieldKind(node));
    const marks = `${attr(node, 'id')} ${attr(node, 'class')} ${tag(node) === 'iframe' ? `${attr(node, 'src')} ${attr(node, 'title')}` : ''}`;
    found = (secret || captcha.test(marks)) && visible(node, style);
    return found ? STOP : { hidden: style.visibility !== 'visible' };
  });
  return found || !whole;
};

const challenge = ({ whole }) => (whole ? wholeChallenge() : challenged());
