package cases

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
)

// Another is the case in a browser of its own, which knows nothing yet and ends
// with the test.
func (c *Case) Another(t testing.TB) *Case {
	t.Helper()
	page := c.group.launch(t, t)
	t.Cleanup(func() {
		if err := page.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Case{TB: t, group: c.group, id: c.id, Page: page}
}

// Opens goes to an address, which has to be refused with the code.
func (c *Case) Opens(address string, code fault.Code) {
	c.Helper()
	u, err := site.ParseURL(address)
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	if _, err := c.Page.Navigate(ctx, u); !fault.Is(err, code) {
		c.Errorf("%s: %v, want %s", address, err, code)
	}
}

// Requests are those that reached an address, whatever their query, in order.
func (c *Case) Requests(address string) (out []chromiumtest.Request) {
	host, path, _ := strings.Cut(strings.TrimPrefix(address, "https://"), "/")
	for _, r := range c.group.site.Requests(host) {
		if r.Path == "/"+path {
			out = append(out, r)
		}
	}
	return out
}

// Posted are the bodies that were posted to an address.
func (c *Case) Posted(address string) (out []string) {
	for _, r := range c.Requests(address) {
		if r.Method == "POST" {
			out = append(out, r.Body)
		}
	}
	return out
}

// Cookies are the Cookie headers of the requests that reached an address.
func (c *Case) Cookies(address string) (out []string) {
	for _, r := range c.Requests(address) {
		out = append(out, r.Header.Get("Cookie"))
	}
	return out
}

// Connects are the destinations that were asked of the browser's only way out.
func (c *Case) Connects() []string { return c.group.site.Connects() }

// Until waits until something is so.
func (c *Case) Until(what string, so func() bool) {
	c.Helper()
	for deadline := time.Now().Add(patience); !so(); {
		if time.Now().After(deadline) {
			c.Fatal("never: " + what)
		}
		<-time.After(20 * time.Millisecond)
	}
}
