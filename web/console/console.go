// Package console holds the owner's pages: plain ES modules, one style sheet,
// and a client of the owner API only (VIEW-01 to VIEW-04, CCLI-01, SWEEP-01).
// What a website or an agent wrote is put on the page as text, never as markup.
package console

import (
	"embed"
	"io/fs"
)

//go:embed index.html *.css *.js *.svg
var files embed.FS

// Files are the pages.
func Files() fs.FS { return files }
