// A service worker that would answer every page by itself.
addEventListener("fetch", (event) => event.respondWith(new Response("from the worker")));
