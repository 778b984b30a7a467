// Articles in view (ART-01 to ART-05): an excerpt, and the address behind the
// one visible time stamp. The address is evidence and is checked outside.
const isArticle = (el) => tag(el) === 'article' || firstRole(el) === 'article';

const onScreen = (el) => {
  const r = box(el);
  return hasBox(r) && r.bottom > 0 && r.right > 0 && r.top < innerHeight && r.left < innerWidth;
};

// nearest is the closest element with the tag: el, or one around it inside outer.
const nearest = (el, name, outer) => {
  for (const up of ancestors(el)) {
    if (up === outer) return null;
    if (tag(up) === name) return up;
  }
  return null;
};

const linkAddress = accessor(HTMLAnchorElement.prototype, 'href');

// stampLink is the address of the only visible link that holds a time, or is
// held by one; there is none when the walk did not finish or found two.
const stampLink = (article) => {
  const links = new Set();
  const scan = { nodes: 0, max: 256, limit: false };
  elementsBelow(article, scan, (el) => !isArticle(el) && !silent(el, styleOf(el)), (el) => {
    if (!['time', 'a'].includes(tag(el)) || !present(el)) return;
    const link = nearest(el, 'a', article);
    if (link && hasAttribute(link, 'href') && nearest(el, 'time', article)) links.add(link);
  });
  if (scan.limit || links.size !== 1) return null;
  const [link] = links;
  const href = linkAddress(link);
  return present(link) && href.length <= MAX_CELL ? { text: href, truncated: false } : null;
};

const articleRow = (article, columns) => columns.map((c) => {
  if (c === 0) return cellText(article, (el) => el !== article && isArticle(el));
  return c === 1 ? stampLink(article) : null;
});
