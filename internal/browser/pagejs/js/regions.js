// Regions (REGN-02 to REGN-06, FOC-05): the parts of the main document that an
// agent can read on their own. They are evidence; nothing can be done to them.
const MAX_REGIONS = 32;
const MAX_SCAN = 8192;
const summaryLimits = { nodes: 256, units: 8192, bytes: 4096 };
const MAX_SUMMARY = 512;

const regionKinds = ['dialog', 'alert', 'status', 'form', 'main', 'section', 'heading'];
// Worth listing only for what they say; the others also hold controls.
const saying = new Set(['alert', 'status', 'section', 'heading']);

const firstRole = (el) => attr(el, 'role').trim().split(/\s+/u)[0].toLowerCase();

// partsOf are the elements in root that may be regions, in order.
const regionSelector = 'dialog,output,form,main,section,h1,h2,h3,h4,h5,h6,[role],[aria-live="assertive" i],[aria-live="polite" i]';
const partsOf = (root) => (pass.parts ??= Array.from(selectAll(root, regionSelector)));

const regionKind = (el, errors) => {
  const name = tag(el);
  const given = firstRole(el);
  const live = attr(el, 'aria-live').trim().toLowerCase();
  if (isDialog(el)) return 'dialog';
  if (given === 'alert' || live === 'assertive' || errors.has(el)) return 'alert';
  if (given === 'status' || live === 'polite' || name === 'output') return 'status';
  if (name === 'form' || given === 'form') return 'form';
  if (name === 'main' || given === 'main') return 'main';
  if (name === 'section' || given === 'region') return 'section';
  if (/^h[1-6]$/u.test(name) || given === 'heading') return 'heading';
  return '';
};

// elementsOf walks the elements of the light tree in order, at most max.
function* elementsOf(root, scan) {
  const walker = method(Document.prototype, 'createTreeWalker')(document, root, NodeFilter.SHOW_ELEMENT);
  for (let el = walker.nextNode(); el; el = walker.nextNode()) {
    if (scan.nodes === scan.max) {
      scan.limit = true;
      return;
    }
    scan.nodes++;
    yield el;
  }
}

const summary = (el) => {
  const read = readText(el, summaryLimits, { light: true });
  const text = read.prose.toString();
  const short = clip(text, MAX_SUMMARY);
  return { text: short, textTruncated: read.nodeLimit || read.textLimit || short.length < text.length };
};

let regionHandles = { revision: '', list: [] };

// regionsIn lists the regions inside root by kind, then in document order.
const regionsIn = (root, revision) => {
  const all = selectAll(root, '*');
  const limit = all.length > MAX_SCAN;
  const last = limit ? all[MAX_SCAN - 1] : null;
  const errors = new Set();
  for (const field of Array.from(selectAll(document, '[aria-invalid="true" i]')).slice(0, MAX_NEWS)) {
    for (const message of errorMessages(field)) errors.add(message);
  }
  const possible = new Set(partsOf(root));
  const more = Array.from(errors).filter((el) => !possible.has(el) && el !== root && contains(root, el));
  const parts = more.length ? [...possible, ...more].sort((a, b) => (comesAfter(a, b) ? 1 : -1)) : possible;
  const byKind = Object.fromEntries(regionKinds.map((kind) => [kind, []]));
  for (const el of parts) {
    if (last && comesAfter(el, last)) break;
    const kind = regionKind(el, errors);
    if (kind && visible(el) && !muted(el)) byKind[kind].push(el);
  }
  const found = regionKinds.flatMap((kind) => byKind[kind].map((el) => ({ kind, el })));
  const kept = [];
  let seen = 0;
  for (const { kind, el } of found) {
    if (kept.length === MAX_REGIONS) break;
    seen++;
    const record = { kind, ...summary(el) };
    if (record.text || !saying.has(kind)) kept.push({ el, record });
  }
  regionHandles = { revision, list: kept.map(({ el, record }) => ({ ref: new WeakRef(el), kind: record.kind })) };
  return {
    regions: kept.map(({ record }) => record),
    regionNodes: Math.min(all.length, MAX_SCAN),
    regionLimit: limit,
    omittedRegions: found.length - seen,
  };
};
