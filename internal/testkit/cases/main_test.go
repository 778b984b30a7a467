package cases_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/testkit/cases"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
)

// shared is the browser of all cases.
var shared cases.Group

func TestMain(m *testing.M) {
	status := chromiumtest.Main(m)
	for _, err := range append(shared.Close(), leased.Close()...) {
		fmt.Fprintln(os.Stderr, "cases:", err)
		status = 1
	}
	os.Exit(status)
}

// heard is a test whose failures are counted instead.
type heard struct {
	testing.TB
	failures int
}

func (h *heard) Errorf(string, ...any) { h.failures++ }

// A case notices what a page tells beyond what it should, and in another order;
// otherwise no case could fail.
func TestOnlyIsExact(t *testing.T) {
	const page = `<title>Two</title><button onclick="tell('one'); tell('two')">Both</button>`
	for _, try := range []struct {
		words []string
		wrong int
	}{{[]string{"one", "two"}, 0}, {[]string{"two", "one"}, 1}, {[]string{"two"}, 1}, {nil, 1}} {
		h := &heard{TB: t}
		c := shared.Case(h)
		c.Must(c.Open(page), action.Click, "Both")
		c.Only(try.words...)
		if h.failures != try.wrong {
			t.Errorf("%q: %d failures, want %d", try.words, h.failures, try.wrong)
		}
	}
}
