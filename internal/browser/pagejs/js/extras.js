// collectExtras is what an observation has besides its controls, of the part of
// the page that root is.
const collectExtras = ({ revision, regions, extract, draft }, root) => {
  const extras = {
    ...pageText(root),
    ...(regions ? regionsIn(root, revision) : {}),
    extraction: extract ? extraction(extract) : null,
    draft: draft ? draftState(draft, root) : '',
  };
  keepFocus(revision, root);
  return extras;
};
