package product_test

import (
	"testing"

	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

// CHAL-01, REC-02: a page that asks for its owner is not shown to the agent, the
// owner sees that the profile waits, and after a sign-in the same agent goes on.
func TestWebsiteAsksForItsOwner(t *testing.T) {
	_, r, id := signedIn(t)
	site := shared.site
	agent := product.NewAgent(t, r.Data, "--profile", id)
	agent.Open(tickets)
	asked := agent.Call("browser.navigate", map[string]string{"url": practice.URL(practice.Desk, "/signin")})
	if asked.Code != "tool.browser.needs_user" || len(asked.Elements) != 0 || asked.Text != "" {
		t.Fatalf("%+v", asked)
	}
	status := func() string {
		var p struct {
			Status string `json:"status"`
		}
		r.Must(&p, "profile", "show", id, "--json")
		return p.Status
	}
	if got := status(); got != "needs_user" {
		t.Errorf("the profile is %s", got)
	}
	mark := site.Mark()
	if v := agent.Call("browser.navigate", map[string]string{"url": tickets}); v.Code != "tool.browser.needs_user" || site.Mark() != mark {
		t.Errorf("%+v", v)
	}
	r.SignIn(site, id)
	if got := status(); got != "ready" {
		t.Errorf("the profile is %s", got)
	}
	if v := agent.Open(tickets); v.URL != tickets {
		t.Errorf("%+v", v)
	}
}
