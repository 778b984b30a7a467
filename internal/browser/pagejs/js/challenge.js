// Is something on screen that only the user can answer (section 2.5, as the
// ceremony reads it: the whole page counts)?
const phrases = /use (a )?passkey|verification code|multi-factor|two-factor|consent required/iu;

const challenge = () => {
  let nodes = 0;
  let tail = ''; // a phrase may be split over neighbouring elements
  const look = (node, depth) => {
    if (depth > MAX_DEPTH || ++nodes > MAX_NODES) return true; // too big to clear: assume one
    if (isText(node)) {
      const text = textOf(node);
      if (!/\S/u.test(text) || !textHasBox(node)) return false;
      tail = collapse(`${tail} ${text}`).slice(-(text.length + 64));
      return phrases.test(tail);
    }
    if (isElement(node)) {
      if (['script', 'style', 'noscript', 'template'].includes(tag(node))) return false;
      if (styleOf(node).display === 'none') return false;
      const shown = visible(node);
      if (shown && ['input', 'textarea'].includes(tag(node)) && ['password', 'one_time_code'].includes(fieldKind(node))) return true;
      if (shown && /captcha/iu.test(`${attr(node, 'id')} ${attr(node, 'class')}`)) return true;
      if (tag(node) === 'iframe') return shown && /captcha/iu.test(`${attr(node, 'src')} ${attr(node, 'title')}`);
      if (styleOf(node).visibility !== 'visible') {
        for (const child of children(node)) if (isElement(child) && look(child, depth + 1)) return true;
        return false;
      }
    }
    for (const child of children(node)) if (look(child, depth + 1)) return true;
    return false;
  };
  return look(document, 0);
};
