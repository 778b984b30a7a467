// Focused reads (FOC-01 to FOC-04): one region of the newest observation is
// read alone. The region is the live node itself, never a look-alike.
let focusHandle = { revision: '', ref: null };

// regionRoot is the node of a region of that revision; region -1 is the one
// that was in focus. It is null when the node is no longer what was listed.
const regionRoot = ({ revision, region }) => {
  const focused = region === -1;
  const handle = focused ? focusHandle : regionHandles.list[region];
  if (!revision || (focused ? focusHandle : regionHandles).revision !== revision) return null;
  const el = handle?.ref?.deref();
  if (!el || !isConnected(el) || ownerDocument(el) !== document || !visible(el) || muted(el)) return null;
  return el;
};

const keepFocus = (revision, root) => {
  focusHandle = root === document ? { revision: '', ref: null } : { revision, ref: new WeakRef(root) };
};

const dropRegions = () => {
  regionHandles = { revision: '', list: [] };
  focusHandle = { revision: '', ref: null };
};
