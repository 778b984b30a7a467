package articles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
)

const host = "pages.example"

// article is a saved page with what must be read of it and what must not.
type article struct {
	name      string
	body      []byte
	must, not []string
}

var (
	pages    []article
	pagesErr error
)

// The pages are read before root, who may own the module cache, is given up.
func TestMain(m *testing.M) {
	pages, pagesErr = load()
	os.Exit(chromiumtest.Main(m))
}

func load() ([]article, error) {
	const trafilatura, readability = "github.com/markusmobius/go-trafilatura", "github.com/go-shiori/go-readability"
	cmd := exec.Command("go", "mod", "download", "-json", trafilatura, readability)
	cmd.Dir = "testdata"
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("getting the pages: %w", err)
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		dirs[m.Path] = m.Dir
	}
	one, err := compared(dirs[trafilatura])
	if err != nil {
		return nil, err
	}
	two, err := expected(dirs[readability])
	return append(one, two...), err
}

// some picks about n of the paths, spread evenly.
func some(paths []string, n int) []string {
	slices.Sort(paths)
	var out []string
	for i := 0; i < len(paths); i += max(1, len(paths)/n) {
		out = append(out, paths[i])
	}
	return out
}

// compared reads the pages whose must-strings stand in a Go table.
func compared(dir string) ([]article, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, "scripts", "comparison", "data.go"), nil, 0)
	if err != nil {
		return nil, err
	}
	wanted := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		entry, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		name, with := "", []string(nil)
		for _, e := range entry.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch key, _ := kv.Key.(*ast.Ident); {
			case key == nil:
			case key.Name == "File":
				name = literal(kv.Value)
			case key.Name == "With":
				if list, ok := kv.Value.(*ast.CompositeLit); ok {
					for _, s := range list.Elts {
						with = append(with, literal(s))
					}
				}
			}
		}
		if name != "" && len(with) > 0 {
			wanted[name] = with
		}
		return true
	})
	paths, err := filepath.Glob(filepath.Join(dir, "test-files", "*", "*.html"))
	if err != nil {
		return nil, err
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return wanted[filepath.Base(p)] == nil })
	var out []article
	for _, p := range some(paths, 16) {
		body, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		out = append(out, article{filepath.Base(p), body, wanted[filepath.Base(p)], machine(body)})
	}
	return out, nil
}

func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}

// expected reads the pages that come with their article; its first long texts
// must be read.
func expected(dir string) ([]article, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "test-pages", "*", "source.html"))
	if err != nil {
		return nil, err
	}
	var out []article
	for _, p := range some(paths, 12) {
		body, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		clean, err := os.ReadFile(filepath.Join(filepath.Dir(p), "expected.html"))
		if err != nil {
			return nil, err
		}
		a := article{name: filepath.Base(filepath.Dir(p)), body: body, not: machine(body)}
		texts(clean, func(_, text string) {
			if len(text) > 40 && len(a.must) < 5 {
				a.must = append(a.must, text)
			}
		})
		out = append(out, a)
	}
	return out, nil
}

// machine is the beginning of what a page says to machines only: scripts,
// styles and comments.
func machine(body []byte) []string {
	var out []string
	texts(body, func(tag, text string) {
		if (tag == "script" || tag == "style" || tag == "!") && len(text) > 80 {
			out = append(out, text[:60])
		}
	})
	return out
}

// texts tells of every text, folded, with the tag around it; "!" is a comment.
func texts(body []byte, tell func(tag, text string)) {
	z := html.NewTokenizer(bytes.NewReader(body))
	tag := ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken:
			name, _ := z.TagName()
			tag = string(name)
		case html.EndTagToken:
			tag = ""
		case html.CommentToken:
			tell("!", fold(string(z.Text())))
		case html.TextToken:
			tell(tag, fold(string(z.Text())))
		}
	}
}

func fold(s string) string {
	return strings.ToValidUTF8(strings.Join(strings.Fields(strings.ReplaceAll(s, "\u00a0", " ")), " "), "\ufffd")
}

func TestSavedPages(t *testing.T) {
	if pagesErr != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(pagesErr)
		}
		t.Skip(pagesErr)
	}
	if len(pages) < 20 {
		t.Fatalf("%d pages", len(pages))
	}
	s := chromiumtest.NewSite(t, host)
	origins, err := site.ParseOrigins([]string{"https://" + host})
	if err != nil {
		t.Fatal(err)
	}
	browser, err := driver.Launch(t.Context(), driver.Config{
		Origins: origins, Proxy: s.Proxy, Home: chromiumtest.Home(t), Chromium: chromiumtest.Chromium(t), TrustedCA: s.CA, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer browser.Close()
	found, all := 0, 0
	for i, a := range pages {
		path := fmt.Sprintf("/%d", i)
		s.Handle(host+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'") // as it was saved, alone
			_, _ = w.Write(a.body)
		})
		u, err := site.ParseURL("https://" + host + path)
		if err != nil {
			t.Fatal(err)
		}
		d, err := browser.Navigate(t.Context(), u)
		if err != nil {
			t.Errorf("%s: %v", a.name, err)
			continue
		}
		text := fold(d.Text)
		for _, want := range a.must {
			all++
			if strings.Contains(text, fold(want)) {
				found++
			} else {
				t.Logf("%s: not read: %.80q", a.name, want)
			}
		}
		for _, no := range a.not {
			if strings.Contains(text, no) {
				t.Errorf("%s: read: %q", a.name, no)
			}
		}
	}
	t.Logf("%d of %d texts on %d pages", found, all, len(pages))
	if all < 80 || found*100 < all*97 {
		t.Errorf("%d of %d texts were read", found, all)
	}
}
