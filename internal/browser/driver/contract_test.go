package driver_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/browsertest"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
)

// GATE-01: a real Chromium keeps the contract.
func TestContract(t *testing.T) {
	t.Parallel()
	browsertest.Run(t, func(ctx context.Context, origins site.Origins) (browser.Page, browsertest.Site, error) {
		s := chromiumtest.NewSite(t, browsertest.Hosts()...)
		for _, h := range browsertest.Hosts() {
			s.Page(h+"/effect", "")
		}
		c := config(t, s, origins.Strings()...)
		p, err := driver.Launch(ctx, c)
		return p, pages{s, &sync.Map{}}, err
	})
}

// pages draws the contract's site as HTML. Its pages report what reached them
// to the site, whose record is the independent one. A page that was not put
// does not answer: its connection is cut.
type pages struct {
	*chromiumtest.Site
	bodies *sync.Map // by host and path
}

func (s pages) Put(address string, d browsertest.Doc) {
	u, err := url.Parse(address)
	if err != nil {
		panic(err) // a constant of the suite
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<title>%s</title><script>const say = (k, n, v) => fetch('/effect?' + (performance.timeOrigin + performance.now()), {method: 'POST', body: JSON.stringify({Kind: k, Name: n, Value: v})})</script><p>%s</p>`,
		html.EscapeString(d.Title), html.EscapeString(d.Text))
	for _, c := range d.Controls {
		name, off := html.EscapeString(c.Name), ""
		if c.Disabled {
			off = "disabled"
		}
		switch {
		case c.Opens != "":
			fmt.Fprintf(&b, `<a href="%s">%s</a>`, html.EscapeString(c.Opens), name)
		case c.Role == "button":
			fmt.Fprintf(&b, `<button %s onclick="say('click', this.textContent, '')">%s</button>`, off, name)
		case c.Field == observe.FieldFile:
			fmt.Fprintf(&b, `<input type=file aria-label="%s" onchange="tell(this)"><script>%s</script>`, name, tellFile)
		default:
			kind := map[observe.FieldKind]string{observe.FieldPassword: "type=password", observe.FieldOneTimeCode: "autocomplete=one-time-code"}[c.Field]
			fmt.Fprintf(&b, `<input %s %s aria-label="%s" oninput="say('type', this.getAttribute('aria-label'), this.value)">`, kind, off, name)
		}
	}
	if _, again := s.bodies.Swap(u.Host+u.Path, b.String()); again {
		return
	}
	s.Handle(u.Host+u.Path, func(w http.ResponseWriter, r *http.Request) {
		body, _ := s.bodies.Load(r.Host + r.URL.Path)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, "<!doctype html><meta charset=utf-8>", body)
	})
}

// tellFile reports the checksum of a chosen file.
const tellFile = `const tell = async (i) => { const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', await i.files[0].arrayBuffer()));
	say('upload', i.getAttribute('aria-label'), [...sum].map((b) => b.toString(16).padStart(2, '0')).join('')) }`

func (s pages) Opened(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return s.Count(u.Host, u.Path)
}

func (s pages) Effects(n int) []browsertest.Effect {
	deadline := time.Now().Add(time.Minute)
	for {
		var reports []chromiumtest.Request
		for _, h := range browsertest.Hosts() {
			for _, r := range s.Requests(h) {
				if r.Path == "/effect" {
					reports = append(reports, r)
				}
			}
		}
		// What is said at almost the same time may arrive in any order.
		slices.SortStableFunc(reports, func(a, b chromiumtest.Request) int { return cmp.Compare(a.Query, b.Query) })
		var out []browsertest.Effect
		for _, r := range reports {
			var e browsertest.Effect
			if json.Unmarshal([]byte(r.Body), &e) != nil {
				e.Kind = action.Kind("unreadable")
			}
			out = append(out, e)
		}
		if len(out) >= n || time.Now().After(deadline) {
			return out
		}
		<-time.After(10 * time.Millisecond)
	}
}
