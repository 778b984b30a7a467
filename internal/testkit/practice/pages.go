package practice

import (
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
)

//go:embed pages
var pageFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// pages holds one template per file under pages/, by path without ending:
// "desk/tickets", "shapes/reorder", "hostile/links". Each file defines "title"
// and "body"; a file that defines "bare" is served without the site's frame.
type pages struct {
	byPath map[string]*template.Template
	shapes []link
	lies   []link
}

type link struct{ Path, Title string }

// view is what every page may use.
type view struct {
	Host   string
	User   string
	CSRF   string
	Canary string
	Error  string
	Data   any
	Repeat []int // 0 to 4999, for pages that need bulk
}

func loadPages() (*pages, error) {
	functions := template.FuncMap{"priorities": func() []string { return []string{"low", "normal", "high"} }}
	layout, err := template.New("").Funcs(functions).ParseFS(pageFiles, "pages/layout.html")
	if err != nil {
		return nil, fmt.Errorf("practice: %w", err)
	}
	p := &pages{byPath: map[string]*template.Template{}}
	files, err := fs.Glob(pageFiles, "pages/*/*.html")
	if err != nil {
		return nil, fmt.Errorf("practice: %w", err)
	}
	for _, f := range files {
		t, err := template.Must(layout.Clone()).ParseFS(pageFiles, f)
		if err != nil {
			return nil, fmt.Errorf("practice: %w", err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(f, "pages/"), ".html")
		p.byPath[name] = t
		var title strings.Builder
		if err := t.ExecuteTemplate(&title, "title", view{}); err != nil {
			return nil, fmt.Errorf("practice: %s: %w", f, err)
		}
		dir, base := path.Split(name)
		switch {
		case base == "index":
		case dir == "shapes/":
			p.shapes = append(p.shapes, link{"/shapes/" + base, title.String()})
		case dir == "hostile/":
			p.lies = append(p.lies, link{"/" + base, title.String()})
		}
	}
	return p, nil
}

// show answers with a page.
func (p *pages) show(w http.ResponseWriter, r *http.Request, status int, name string, v view) {
	t, ok := p.byPath[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	v.Host = hostOf(r)
	var body strings.Builder
	root := "layout"
	if t.Lookup("bare") != nil {
		root = "bare"
	}
	if err := t.ExecuteTemplate(&body, root, v); err != nil {
		http.Error(w, "practice: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprint(w, body.String())
}

// Shapes lists the paths of the page shapes on the desk and on the hostile
// host, as full URLs.
func (s *Site) Shapes() []string {
	var out []string
	for _, l := range s.desk.pages.shapes {
		out = append(out, URL(Desk, l.Path))
	}
	for _, l := range s.desk.pages.lies {
		out = append(out, URL(Hostile, l.Path))
	}
	return slices.Clip(out)
}

func assets() http.Handler {
	sub, err := fs.Sub(assetFiles, "assets")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return http.StripPrefix("/assets/", http.FileServerFS(sub))
}

func count(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
