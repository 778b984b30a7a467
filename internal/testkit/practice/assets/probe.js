// Tells the site's record what this page saw. A control with data-says reports
// when it is used, writes its name into the title and into the page's output.
function probe(what, event) {
  return fetch("/probe", {
    method: "POST",
    keepalive: true,
    body: JSON.stringify({ what: String(what).slice(0, 200), page: location.pathname, trusted: !event || event.isTrusted }),
  });
}

addEventListener("click", (event) => {
  const control = event.composedPath().find((n) => n.dataset && n.dataset.says);
  if (!control) return;
  document.title = control.dataset.says;
  const out = document.querySelector("output");
  if (out) out.textContent = "You pressed " + control.dataset.says + ".";
  probe(control.dataset.says, event);
});
