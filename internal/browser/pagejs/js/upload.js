// What takes a file (UPL-02, UPL-04): whether an element is a file input or
// may ask for one, and whether an input takes files of a type. Nothing here
// touches the file.
const acceptOf = (el) => attr(el, 'accept').toLowerCase().split(',').map((token) => token.trim()).filter(Boolean);
const endings = { 'image/png': ['.png'], 'image/jpeg': ['.jpg', '.jpeg'], 'image/webp': ['.webp'] };

// accepts: an input that names types takes those only, and one for folders takes no image.
const accepts = (el, type) => {
  if (hasAttribute(el, 'webkitdirectory')) return false;
  const tokens = acceptOf(el);
  return !tokens.length || tokens.some((t) => t === type || t === 'image/*' || t === '*/*' || t === '*' || endings[type]?.includes(t));
};
// A field for something else asks for no file, and is not clicked to find out.
const otherField = (el) => editable(el) || ['textarea', 'select'].includes(tag(el)) ||
  (tag(el) === 'input' && !['file', 'button', 'image', 'submit', 'reset'].includes(inputType(el)));
const isFileInput = (el) => tag(el) === 'input' && inputType(el) === 'file';

// receiver looks once more at the element, and answers with the number of a
// file input, or with 0 for a control that has to be clicked.
const receiver = (args) => {
  const found = fit(args);
  if (!found.el) return found;
  const { el } = found;
  if (otherField(el)) return refuse('no_file');
  if (!isFileInput(el)) return suits(el, 'click') ? refuse(suits(el, 'click')) : { number: 0 };
  return accepts(el, args.value) ? { number: show(el) } : refuse('not_accepted');
};

// receives judges the input of a chooser that a click has opened, which may be
// no part of the page that is shown.
const receives = (el, type) => {
  if (!(el instanceof HTMLInputElement) || !isFileInput(el) || ownerDocument(el) !== document || disabled(el)) return 'unknown';
  return accepts(el, type) ? '' : 'not_accepted';
};

const screenSize = () => ({ screenWidth: innerWidth, screenHeight: innerHeight });

// pictured is where the element is on screen, cut at the edges, without
// scrolling to it.
const pictured = (args) => {
  const found = live(args);
  if (!found.el) return found;
  if (!visible(found.el)) return refuse('invisible');
  if (rowOf(found.el) !== found.handle.row) return refuse('changed');
  const at = point(found.el);
  if (!at) return refuse('invisible');
  const { left, top, right, bottom } = inView(at.whole);
  return { x: at.x, y: at.y, width: right - left, height: bottom - top, ...screenSize() };
};
