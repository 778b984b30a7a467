package tasks_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/projection"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
	"github.com/chaperone-agents/chaperone/internal/testkit/tasks"
)

// since, with a real browser: a control put before all others leaves the
// numbers of the others as they were, so that only it is read again, and a
// control that was not listed again is acted on by its number.
func TestSinceKeepsNumbers(t *testing.T) {
	web := serve(t, nil)
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "<button data-effect='%d'>Choice %d</button>", i, i)
	}
	start, _ := tasks.Fixture("button") // for its script
	web.Page(tasks.Host+"/since", start+"<p id=top></p>"+b.String()+`<script>
		setTimeout(function () { document.getElementById('top').innerHTML = '<button>First of all</button>'; }, 3500);</script>`)
	origins, err := site.ParseOrigins([]string{"https://" + tasks.Host})
	if err != nil {
		t.Fatal(err)
	}
	page, err := driver.Launch(t.Context(), driver.Config{
		Origins: origins, Proxy: web.Proxy, Home: chromiumtest.Home(t), Chromium: chromiumtest.Chromium(t), Xvfb: chromiumtest.Xvfb(t),
		TrustedCA: web.CA, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { page.Close() })
	r := newReader(t, tasks.OnePage{Page: page}, origins, contract.Newest, 16_000)
	call := func(tool action.Tool, args any) projection.View {
		t.Helper()
		body, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.Broker.Call(t.Context(), r.Agent, tool, body, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	whole := call(action.Navigate, map[string]any{"url": "https://" + tasks.Host + "/since"})
	number := ""
	for _, e := range whole.Elements {
		if e.Name == "Choice 41" {
			number = strings.TrimPrefix(e.Ref, whole.Revision)
		}
	}
	again := whole
	for deadline := time.Now().Add(20 * time.Second); len(again.Elements) == len(whole.Elements) || len(again.Elements) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the new control never came")
		}
		again = call(action.Observe, map[string]any{"since": again.Revision})
		if again.SinceUnavailable || again.Unchanged != len(whole.Elements) || len(again.Gone) != 0 {
			t.Fatalf("%d of %d unchanged, gone %v", again.Unchanged, len(whole.Elements), again.Gone)
		}
	}
	if len(again.Elements) != 1 || again.Elements[0].Name != "First of all" {
		t.Errorf("%d controls are listed again", len(again.Elements))
	}
	before := len(effects(web))
	call(action.Act, map[string]any{"kind": "click", "expected_revision": again.Revision, "ref": again.Revision + number})
	if got := settled(t, web, before, 1); len(got) != 1 || got[0] != "41" {
		t.Errorf("effects %q", got)
	}
}
