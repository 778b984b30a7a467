// Reading one table, list or form as rows of short texts (EXTR-02 to EXTR-07).
// What the texts mean is decided outside the page.
const MAX_ROW_SCAN = 4096;
const MAX_CELL = 256;
const MAX_ROW_CELLS = 16;
const cellLimits = { nodes: 256, units: 8192, bytes: 4096 };

const isTable = (el) => tag(el) === 'table' || ['table', 'grid'].includes(firstRole(el));
const isList = (el) => ['ul', 'ol'].includes(tag(el)) || firstRole(el) === 'list';
const isForm = (el) => tag(el) === 'form' || firstRole(el) === 'form';
const isCollection = (el) => isTable(el) || isList(el) || isForm(el);
const isMain = (el) => tag(el) === 'main' || firstRole(el) === 'main';

const isTableRow = (el) => tag(el) === 'tr' || firstRole(el) === 'row';
const isTableCell = (el) => ['td', 'th'].includes(tag(el)) || ['cell', 'gridcell', 'rowheader', 'columnheader'].includes(firstRole(el));
const isListItem = (el) => tag(el) === 'li' || firstRole(el) === 'listitem';
const isFormControl = (el) => ['input', 'select', 'textarea', 'button'].includes(tag(el)) ||
  ['textbox', 'checkbox', 'radio', 'combobox'].includes(firstRole(el));

// elementsBelow walks the elements inside root in order; into says whether to
// go inside one. It stops at the bound.
const elementsBelow = (root, scan, into, found) => visit(root, (node) => {
  if (!isElement(node)) return false;
  if (node === root) return { root: true };
  if (scan.nodes === scan.max) {
    scan.limit = true;
    return STOP;
  }
  scan.nodes++;
  found(node);
  return into(node) ? { root: false } : false;
}, true);

const present = (el) => visible(el) && !muted(el);

// cellText is the visible text of an element without that of collections in it.
const cellText = (el, skip) => {
  const read = readText(el, cellLimits, { light: true, skip });
  const text = read.prose.toString();
  const short = wholeUnits(text, MAX_CELL);
  return { text: short, truncated: read.nodeLimit || read.textLimit || short.length < text.length };
};

const flag = (yes) => ({ text: yes ? 'true' : 'false', truncated: false });

const spans = (el) => ['colspan', 'rowspan', 'aria-colspan', 'aria-rowspan'].some((name) => {
  const given = attr(el, name).trim();
  return given !== '' && given !== '1';
});

// tableCells are the cells of one row; spanning or too many of them make the
// table's structure unsupported.
const tableCells = (row) => {
  const cells = [];
  const scan = { nodes: 0, max: cellLimits.nodes, limit: false };
  elementsBelow(row, scan, (el) => !isTableCell(el) && !isCollection(el), (el) => {
    if (isTableCell(el)) cells.push(el);
  });
  return { cells, unsupported: cells.some(spans) || cells.length > MAX_ROW_CELLS || scan.limit };
};

const tableRow = (row, columns) => {
  const { cells } = tableCells(row);
  return columns.map((c) => (cells[c] ? cellText(cells[c], (el) => el !== cells[c] && isCollection(el)) : null));
};

const listRow = (item, columns) => columns.map((c) => (c === 0 ? cellText(item, (el) => el !== item && isCollection(el)) : null));

const ariaState = (el, name) => {
  const given = attr(el, name).trim().toLowerCase();
  return given === 'true' || given === 'false' ? flag(given === 'true') : null;
};

const requires = (el) => (['input', 'select', 'textarea'].includes(tag(el)) && hasAttribute(el, 'required')) || truthy(el, 'aria-required');

// formRow: label, role, disabled, checked, required. What is entered or chosen
// is none of them.
const formRow = (el, columns) => columns.map((c) => {
  switch (c) {
    case 0: {
      const name = accessibleName(el);
      const short = wholeUnits(name, MAX_CELL);
      return { text: short, truncated: short.length < name.length };
    }
    case 1: return { text: role(el) || 'generic', truncated: false };
    case 2: return flag(disabled(el));
    case 3: return isNativeChoice(el) ? flag(checkedState(el)) : ariaState(el, 'aria-checked');
    case 4: return flag(requires(el));
  }
  return null;
});

const collections = {
  table: { is: isTable, row: isTableRow, cells: tableRow },
  list: { is: isList, row: isListItem, cells: listRow },
  form: { is: isForm, row: isFormControl, cells: formRow },
  articles: { is: isMain, row: isArticle, cells: articleRow },
};

const tableCaption = (el) => {
  for (let child = firstElement(el); child; child = nextElement(child)) if (tag(child) === 'caption' && present(child)) return cellText(child).text;
  return '';
};

const isHiddenInput = (el) => tag(el) === 'input' && inputType(el) === 'hidden';

// extraction finds the index-th visible collection of the kind and reads its
// rows.
const extraction = ({ kind, index, columns, rowLimit }) => {
  const { is, row, cells } = collections[kind];
  const source = { nodes: 0, max: MAX_SCAN, limit: false };
  const result = { status: 'not_found', sourceName: '', sourceNodes: 0, sourceLimit: false, rowNodes: 0, rowLimit: false, rows: [], omittedRows: 0 };
  let at = null;
  let passed = 0;
  for (const el of elementsOf(document, source)) {
    if (!is(el) || !present(el) || passed++ < index) continue;
    at = el;
    break;
  }
  result.sourceNodes = source.nodes;
  result.sourceLimit = source.limit;
  if (!at) return result;

  const scan = { nodes: 0, max: MAX_ROW_SCAN, limit: false };
  const rows = [];
  // The rows of a collection that is inside are its own, except that fields may
  // stand in a table or list, and articles anywhere in the main region.
  const foreign = { table: isCollection, list: isCollection, form: isForm, articles: isMain }[kind];
  const own = (el) => !row(el) && !foreign(el);
  elementsBelow(at, scan, own, (el) => {
    if (row(el)) rows.push(el);
  });
  result.rowNodes = scan.nodes;
  result.rowLimit = scan.limit;
  result.sourceName = wholeUnits(labelledBy(at) || collapse(attr(at, 'aria-label')) || tableCaption(at), MAX_CELL);
  if (kind === 'table' && rows.some((r) => tableCells(r).unsupported)) return { ...result, status: 'unsupported_structure' };
  const shown = rows.filter((el) => (kind === 'form' ? visible(el) && !truthy(el, 'aria-hidden') && !muted(parent(el)) : present(el)) && !isHiddenInput(el) && (kind !== 'articles' || onScreen(el)));
  result.status = 'extracted';
  result.rows = shown.slice(0, rowLimit).map((el) => cells(el, columns));
  result.omittedRows = Math.max(0, shown.length - rowLimit);
  return result;
};
