// Waiting until nothing in the document has changed for a while (SETL-01).
const quiet = ({ stillMs, boundMs }) => new Promise((resolve) => {
  let timer = 0;
  const finish = (value) => {
    clearTimeout(timer);
    clearTimeout(bound);
    observer.disconnect();
    resolve(value);
  };
  const bound = setTimeout(finish, boundMs, false);
  const restart = () => {
    clearTimeout(timer);
    timer = setTimeout(finish, stillMs, true);
  };
  const observer = new MutationObserver(restart);
  const what = { subtree: true, childList: true, attributes: true, characterData: true };
  observer.observe(document, what);
  // Open shadow roots are separate trees; those that exist now are watched too.
  let visited = 0;
  const look = (root) => {
    const nodes = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT);
    for (let node = nodes.nextNode(); node && ++visited <= 20000; node = nodes.nextNode()) {
      const shadow = shadowRoot(node);
      if (!shadow) continue;
      observer.observe(shadow, what);
      look(shadow);
    }
  };
  look(document);
  restart();
});

const ready = () => accessor(Document.prototype, 'readyState')(document) !== 'loading';
