package driver_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
)

// tries is a script that says whether its document may open a window and may
// relax its origin.
const tries = `fetch('https://wiki.example/effect?' + (window.NAME || document.documentElement.id || location.pathname.slice(1)) + '.' +
	(window.open('https://wiki.example/bad/' + location.protocol) === null ? 'null' : 'WINDOW') + '.' + (() => { try { document.domain = 'wiki.example'; return 'RELAXED'; } catch { return 'kept'; } })(), {mode: 'no-cors'})`

// answer serves a document with headers, in pairs.
func (b *bench) answer(path string, status int, body string, headers ...string) {
	b.Handle(host+path, func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Add(headers[i], headers[i+1])
		}
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

func (b *bench) sees(t *testing.T, word string) {
	t.Helper()
	eventually(t, word, func() bool { return strings.Contains(b.effects(), word) })
}

// POP-03: every document of a page, wherever it comes from, is sandboxed.
func TestEveryDocumentIsSandboxed(t *testing.T) {
	b := newBench(t, nil)
	script := "<script>" + tries + "</script>"
	b.answer("/plain", 200, script)
	b.answer("/missing", 404, "<title>No</title>"+script)
	b.answer("/broken", 500, script)
	b.answer("/own", 200, "<img src=https://wiki.example/bad/image>"+script, "Content-Security-Policy", "img-src 'none'", "Content-Security-Policy", "object-src 'none'")
	b.answer("/wide", 200, script, "Content-Security-Policy", "sandbox allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox allow-forms")
	b.answer("/isolated", 200, "<body>"+script+"<script>document.body.append(String(crossOriginIsolated))</script>", "Cross-Origin-Opener-Policy", "same-origin", "Cross-Origin-Embedder-Policy", "require-corp")
	b.answer("/xhtml", 200, `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>X</title></head><body><script>`+strings.ReplaceAll(tries, "&", "&amp;")+`</script></body></html>`, "Content-Type", "application/xhtml+xml")
	b.answer("/svg", 200, `<svg xmlns="http://www.w3.org/2000/svg"><script>`+tries+`</script></svg>`, "Content-Type", "image/svg+xml")
	b.answer("/sniffed", 200, "<!doctype html><html>"+script, "Content-Type", "")
	for _, path := range []string{"plain", "missing", "broken", "own", "wide", "isolated", "xhtml", "svg", "sniffed"} {
		d, err := b.page.Navigate(t.Context(), parse(t, "https://"+host+"/"+path))
		if err != nil {
			t.Fatal(path, err)
		}
		b.sees(t, path+".null.kept")
		if path == "isolated" && !strings.Contains(d.Text, "true") {
			t.Error("a document that asks for isolation does not get it")
		}
	}
	b.open(t, "/frames", `<html id=outer><iframe src=/plain?frame></iframe><object type=text/html data=/plain?object></object><embed type=text/html src=/plain?embed>
		<iframe id=blank></iframe><iframe id=blob></iframe><iframe id=srcdoc></iframe><iframe id=data></iframe>
		<script>var tries = `+strconv.Quote(tries)+`, of = (name) => '<script>NAME="' + name + '";' + tries + '<\/script>';
		blank.contentDocument.write(of('blank')); blank.contentDocument.close();
		blob.src = URL.createObjectURL(new Blob([of('blob')], {type: 'text/html'})); srcdoc.srcdoc = of('srcdoc'); data.src = 'data:text/html,' + encodeURIComponent(of('data'));</script>`)
	for _, word := range []string{"blank.null.kept", "blob.null.kept", "srcdoc.null.kept", "data.null.kept"} {
		b.sees(t, word)
	}
	eventually(t, "three frames", func() bool { return strings.Count(b.effects(), "plain.null.kept") == 4 })
	if e := b.effects(); strings.Contains(e, "WINDOW") || strings.Contains(e, "RELAXED") {
		t.Error(e)
	}
	if got := b.forbidden(); len(got) != 0 {
		t.Errorf("sent: %q", got)
	}
}

// POP-03: a document that the browser does not put our policy on is not shown,
// and what was open stays.
func TestDocumentWithoutPolicyIsRefused(t *testing.T) {
	const store = "chromewebstore.google.com" // the browser lets no rule change what this site sends
	b := &bench{Site: chromiumtest.NewSite(t, host, store)}
	b.page = launch(t, config(t, b.Site, "https://"+host, "https://"+store))
	b.Handle(host+"/effect", func(http.ResponseWriter, *http.Request) {})
	b.Page(store+"/page", "<title>Store</title>")
	b.answer("/signed", 200, "x", "Content-Type", "application/signed-exchange;v=b3")
	d := b.open(t, "/kept", "<title>Kept</title>"+aliveButton+`<iframe src="https://`+store+`/page"></iframe>`)
	for _, address := range []string{"https://" + store + "/page", "https://" + host + "/signed"} {
		_, err := b.page.Navigate(t.Context(), parse(t, address))
		refused(t, err, fault.SiteUnreachable)
		if d, err = b.page.Observe(t.Context(), observe.Query{}); err != nil || d.Title != "Kept" {
			t.Fatal(d.Title, err)
		}
	}
	if b.Count(store, "/page") != 2 {
		t.Error("the site was not asked, so this shows nothing")
	}
	for _, f := range d.Frames {
		if f.Origin == "https://"+store {
			t.Error("a frame shows the document")
		}
	}
	b.alive(t, d)
}

// POP-03, POP-04: what the site sends arrives as it was sent, and once.
func TestDocumentsArriveUnchanged(t *testing.T) {
	b := newBench(t, nil)
	b.Handle(host+"/set", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "secret", Value: "s1", Path: "/", HttpOnly: true, Secure: true})
		http.SetCookie(w, &http.Cookie{Name: "open", Value: "o1", Path: "/"})
		http.Redirect(w, r, "/middle", http.StatusFound)
	})
	b.Handle(host+"/middle", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "second", Value: "s2", Path: "/", HttpOnly: true})
		http.Redirect(w, r, "/end", http.StatusSeeOther)
	})
	b.Page(host+"/end", `<p id=o></p><script>o.textContent = document.cookie + ' ' + performance.getEntriesByType('navigation')[0].nextHopProtocol</script>`)
	t.Run("cookies along redirects", func(t *testing.T) {
		d, err := b.page.Navigate(t.Context(), parse(t, "https://"+host+"/set"))
		if err != nil || !strings.Contains(d.Text, "open=o1 http/1.1") {
			t.Fatal(d.Text, err)
		}
		for _, path := range []string{"/set", "/middle", "/end"} {
			if n := b.Count(host, path); n != 1 {
				t.Errorf("%s was asked for %d times", path, n)
			}
		}
		for _, r := range b.Requests(host) {
			if r.Path == "/end" && (!strings.Contains(r.Header.Get("Cookie"), "secret=s1") || !strings.Contains(r.Header.Get("Cookie"), "second=s2")) {
				t.Errorf("cookies: %s", r.Header.Get("Cookie"))
			}
		}
	})
	t.Run("a form is sent once", func(t *testing.T) {
		for _, status := range []int{http.StatusOK, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusInternalServerError} {
			path := fmt.Sprint("/posted", status)
			b.Handle(host+path, func(w http.ResponseWriter, r *http.Request) {
				if status/100 == 3 {
					w.Header().Set("Location", path+"-next")
				}
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(status)
				_, _ = w.Write([]byte("<title>Posted</title>"))
			})
			b.Page(host+path+"-next", "<title>Posted</title>")
			d := b.open(t, path+"-form", `<form method=post action=`+path+`><input name=a value="b c"><button>Send</button></form>`)
			d, err := b.act(t, d, action.Click, "Send")
			if err != nil || d.Title != "Posted" {
				t.Fatal(status, d.Title, err)
			}
			var seen []string
			for _, r := range b.Requests(host) {
				if r.Path == path || r.Path == path+"-next" {
					seen = append(seen, r.Method+" "+r.Body)
				}
			}
			want := map[int]string{http.StatusSeeOther: "POST a=b+c|GET ", http.StatusTemporaryRedirect: "POST a=b+c|POST a=b+c"}[status]
			if want == "" {
				want = "POST a=b+c"
			}
			if got := strings.Join(seen, "|"); got != want {
				t.Errorf("%d: %q, want %q", status, got, want)
			}
		}
	})
	t.Run("a form that gets no answer is not sent again by the worker", func(t *testing.T) {
		b.Handle(host+"/cut", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		d := b.open(t, "/cut-form", `<form method=post action=/cut><input name=a value=b><button>Send</button></form>`)
		_, err := b.act(t, d, action.Click, "Send")
		refused(t, err, fault.OutcomeUnknown)
		if n := b.Count(host, "/cut"); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
	t.Run("alphabets and compression", func(t *testing.T) {
		utf16le := []byte{0xff, 0xfe}
		for _, u := range utf16.Encode([]rune("<title>Grüße</title>")) {
			utf16le = append(utf16le, byte(u), byte(u>>8))
		}
		b.answer("/latin", 200, "<title>Gr\xfc\xdfe</title>", "Content-Type", "text/html; charset=windows-1252")
		b.answer("/meta", 200, "<meta charset=windows-1252><title>Gr\xfc\xdfe</title>", "Content-Type", "text/html")
		b.answer("/utf16", 200, string(utf16le), "Content-Type", "text/html")
		b.Handle(host+"/gzip", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write([]byte("<title>Grüße</title>"))
			_ = z.Close()
		})
		b.Handle(host+"/hints", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload; as=style")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte("<title>Grüße</title>"))
		})
		for _, path := range []string{"/latin", "/meta", "/utf16", "/gzip", "/hints"} {
			d, err := b.page.Navigate(t.Context(), parse(t, "https://"+host+path))
			if err != nil || d.Title != "Grüße" {
				t.Errorf("%s: %q %v", path, d.Title, err)
			}
		}
	})
	t.Run("a document that did not change", func(t *testing.T) {
		b.Handle(host+"/tagged", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", `"1"`)
			w.Header().Set("Cache-Control", "no-cache")
			if r.Header.Get("If-None-Match") != "" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<title>Tagged</title><script>" + tries + "</script>"))
		})
		for range 2 {
			b.open(t, fmt.Sprint("/between", len(b.Requests(host))), "")
			if d, err := b.page.Navigate(t.Context(), parse(t, "https://"+host+"/tagged")); err != nil || d.Title != "Tagged" {
				t.Fatal(d.Title, err)
			}
		}
		eventually(t, "both sandboxed", func() bool { return strings.Count(b.effects(), "tagged.null.kept") == 2 })
		if n := b.Count(host, "/tagged"); n != 2 {
			t.Errorf("asked for %d times", n)
		}
	})
	t.Run("a document of any size is shown while it comes", func(t *testing.T) {
		more := make(chan struct{})
		b.Handle(host+"/stream", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<title>Stream</title><script>fetch('/effect?first')</script>" + strings.Repeat("<!-- padding -->", 1<<16)))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-more:
			case <-r.Context().Done():
			}
			_, _ = w.Write([]byte("<button>Second</button>" + strings.Repeat("<!-- padding -->", 1<<18)))
		})
		type end struct {
			d   observe.Document
			err error
		}
		ended := make(chan end, 1)
		go func() {
			d, err := b.page.Navigate(t.Context(), parse(t, "https://"+host+"/stream"))
			ended <- end{d, err}
		}()
		b.sees(t, "first")
		close(more)
		if e := <-ended; e.err != nil || find(t, e.d, "Second") == "" {
			t.Error(e.err)
		}
	})
	if got := b.forbidden(); len(got) != 0 {
		t.Errorf("sent: %q", got)
	}
}

// BenchmarkDocument opens documents of several sizes: navigation, settling,
// observation.
func BenchmarkDocument(b *testing.B) {
	s := newBench(b, nil)
	for _, size := range []int{10 << 10, 100 << 10, 1 << 20} {
		path := fmt.Sprint("/size", size)
		s.Page(host+path, strings.Repeat("<!-- 16 bytes -->\n", size/18))
		b.Run(fmt.Sprint(size>>10, "KB"), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.page.Navigate(b.Context(), parse(b, "https://"+host+path)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
