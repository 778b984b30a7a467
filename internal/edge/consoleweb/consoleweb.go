// Package consoleweb serves the owner's pages from inside the program, under a
// policy that lets them load nothing and speak to nobody else (VIEW-02: page
// text that an agent shows the owner stays text).
package consoleweb

import (
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/web/console"
)

// Policy is the Content-Security-Policy of every answer.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Config of the console's listener.
type Config struct {
	Guard httpx.Guard
}

// ApprovalURL is where the owner decides the approval with that id; console is
// the origin, such as http://127.0.0.1:8787.
func ApprovalURL(console, id string) string { return console + "/#/approvals/" + id }

// New serves the pages at /.
func New(c Config) http.Handler {
	pages, err := load(console.Files())
	return c.Guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", Policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), usb=()")
		h.Set("X-Frame-Options", "DENY")
		name := r.URL.Path
		if name == "/" {
			name = "/index.html"
		}
		p, ok := pages[name]
		switch {
		case err != nil:
			httpx.Fail(w, err)
		case !ok || r.Method != http.MethodGet && r.Method != http.MethodHead:
			httpx.Fail(w, fault.New(fault.NotFound, "There is no such page."))
		default:
			h.Set("Content-Type", p.media)
			w.Write(p.body) // the reader may have gone; there is nobody left to tell
		}
	}))
}

type page struct {
	media string
	body  []byte
}

func load(files fs.FS) (map[string]page, error) {
	pages := map[string]page{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(files, name)
		media := mediaTypes[path.Ext(name)]
		if err != nil || media == "" {
			return fmt.Errorf("consoleweb: %s cannot be served: %w", name, err)
		}
		pages["/"+name] = page{media: mime.FormatMediaType(media, map[string]string{"charset": "utf-8"}), body: body}
		return nil
	})
	return pages, err
}

// mediaTypes is fixed, not the machine's: a module with another type does not run.
var mediaTypes = map[string]string{".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
