// Package ceremony holds the owner's sign-in page: plain HTML, CSS and ES
// modules without a build step. It shows a live picture of the site, sends the
// owner's clicks and keys, and keeps nothing (SURF-01 to SURF-03, CER-05).
package ceremony

import "embed"

// Files are the page's files.
//
//go:embed index.html surface.css surface.js events.js
var Files embed.FS
