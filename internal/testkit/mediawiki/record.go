package mediawiki

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Page is a page as MediaWiki's API tells it.
type Page struct {
	Exists    bool
	Text      string     // of the newest revision
	Revisions []Revision // newest first, at most 50
}

// Revision is one saved version.
type Revision struct {
	ID      int       `json:"revid"`
	User    string    `json:"user"`
	Comment string    `json:"comment"`
	Time    time.Time `json:"timestamp"`
}

// Page reads a page from PHP's server directly: neither the product nor its
// browser is involved.
func (w *Wiki) Page(ctx context.Context, title string) (Page, error) {
	q := url.Values{
		"action": {"query"}, "format": {"json"}, "formatversion": {"2"}, "prop": {"revisions"}, "titles": {title},
		"rvprop": {"ids|user|comment|timestamp|content"}, "rvslots": {"main"}, "rvlimit": {"50"},
	}
	status, text, err := get(ctx, w.client, "https://"+w.Host+"/api.php?"+q.Encode())
	if err != nil {
		return Page{}, err
	}
	var answer struct {
		Query struct {
			Pages []struct {
				Missing   bool
				Revisions []struct {
					Revision
					Slots struct{ Main struct{ Content string } }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Query.Pages) != 1 {
		return Page{}, fmt.Errorf("mediawiki: the API answered %d without a page", status)
	}
	found := answer.Query.Pages[0]
	p := Page{Exists: !found.Missing}
	for i, rev := range found.Revisions {
		if i == 0 {
			p.Text = rev.Slots.Main.Content
		}
		p.Revisions = append(p.Revisions, rev.Revision)
	}
	return p, nil
}

func get(ctx context.Context, c *http.Client, u string) (int, string, error) {
	return send(ctx, c, http.MethodGet, u, nil)
}

func post(ctx context.Context, c *http.Client, u string, form url.Values) (int, string, error) {
	return send(ctx, c, http.MethodPost, u, form)
}

func send(ctx context.Context, c *http.Client, method, u string, form url.Values) (int, string, error) {
	q, err := http.NewRequestWithContext(ctx, method, u, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, "", fmt.Errorf("mediawiki: %w", err)
	}
	if method == http.MethodPost {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r, err := c.Do(q)
	if err != nil {
		return 0, "", fmt.Errorf("mediawiki: %w", err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	return r.StatusCode, string(b), err
}

// Visit is one page that MediaWiki rendered through Handler.
type Visit struct {
	Method string
	Path   string // without its query
	Title  string // of the wiki page
	User   string // who MediaWiki says is signed in; empty is nobody
}

// Visits lists the pages rendered so far, oldest first.
func (w *Wiki) Visits() []Visit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.visits)
}

// Secrets lists the password and the value of every cookie that MediaWiki
// handed out through Handler: what no agent, log or database may ever hold.
func (w *Wiki) Secrets() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{w.Password}, w.cookies...)
}

// MediaWiki writes these into the head of every page.
var (
	userIs  = regexp.MustCompile(`"wgUserName":"((?:[^"\\]|\\.)*)"`)
	titleIs = regexp.MustCompile(`"wgPageName":"((?:[^"\\]|\\.)*)"`)
)

// Handler passes requests on to PHP's server and notes what it rendered. It is
// for practice.Config.Hosts.
func (w *Wiki) Handler() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: w.addr})
			p.Out.Host = w.Host
			p.Out.Header.Set("X-Forwarded-Proto", "https")
			p.Out.Header.Del("Accept-Encoding") // so that the page can be read here
		},
		ModifyResponse: w.note,
	}
}

func (w *Wiki) note(r *http.Response) error {
	w.mu.Lock()
	for _, c := range r.Cookies() {
		if len(c.Value) >= 16 { // shorter ones are flags and the user's name
			w.cookies = append(w.cookies, c.Value)
		}
	}
	w.mu.Unlock()
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
		return nil
	}
	page, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	r.Body.Close()
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(page))
	if title := titleIs.FindSubmatch(page); title != nil {
		v := Visit{Method: r.Request.Method, Path: r.Request.URL.Path, Title: unquote(title[1])}
		if user := userIs.FindSubmatch(page); user != nil {
			v.User = unquote(user[1])
		}
		w.mu.Lock()
		w.visits = append(w.visits, v)
		w.mu.Unlock()
	}
	return nil
}

func unquote(b []byte) string {
	var s string
	if json.Unmarshal(slices.Concat([]byte{'"'}, b, []byte{'"'}), &s) != nil {
		return ""
	}
	return s
}
