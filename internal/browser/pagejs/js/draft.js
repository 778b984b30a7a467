// Draft receipts (DRAFT-02 to DRAFT-04): whether the editor that was typed into
// still shows exactly that. The answer is a word; the text of an editor never
// leaves the page.
let draftEditor = null;

// keepDraft binds the receipt to the outermost editor around the element. Any
// other field leaves an earlier receipt as it is.
const keepDraft = ({ revision, index }) => {
  const el = handles.revision === revision ? handles.list[index]?.ref.deref() : null;
  if (!el || !editable(el) || valueOf[tag(el)]) return false;
  draftEditor = new WeakRef(host(el));
  return true;
};

// smallEnough is decided before anything is rendered.
const smallEnough = (editor) => {
  let nodes = 0;
  let units = 0;
  return visit(editor, (node) => {
    if (isText(node)) units += textOf(node).length;
    return ++nodes > 256 || units > 4096 ? STOP : { node };
  });
};

const printedText = accessor(HTMLElement.prototype, 'innerText');

// shows: exactly the text, but for how editors write spaces, empty ends and
// the gap between paragraphs.
const shows = (editor, text) => {
  const plain = (s) => s.replace(/\r\n?/gu, '\n').replace(/\u00a0/gu, ' ').replace(/[\u200b\ufeff]/gu, '').replace(/\n+$/u, '');
  const printed = plain(printedText(editor));
  return printed === plain(text) || printed.replace(/\n\n/gu, '\n') === plain(text);
};

// draftState is "holds", "elsewhere" for a draft outside the part that is
// read, or "void" for good.
const draftState = (text, root) => {
  const editor = draftEditor?.deref();
  const holds = editor && isConnected(editor) && ownerDocument(editor) === document && editable(editor) && host(editor) === editor &&
    visible(editor) && !muted(parent(editor)) && !['password', 'one_time_code'].includes(fieldKind(editor)) &&
    !hasAttribute(editor, 'hidden') && !truthy(editor, 'aria-hidden') && smallEnough(editor) && shows(editor, text);
  if (!holds) {
    draftEditor = null;
    return 'void';
  }
  return within(editor, root) ? 'holds' : 'elsewhere';
};
