package driver

import (
	"strings"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// teller turns what a page says of its controls into facts. Addresses end here:
// only what is true of them goes on (FACT-05).
type teller struct {
	origin    site.Origin     // of the page
	sensitive map[string]bool // paths that have been judged
}

func newTeller(page site.URL) *teller {
	return &teller{origin: page.Origin(), sensitive: map[string]bool{}}
}

// facts are those of one control. Where there was no time for them, they say
// that not all is known, which no grant covers.
func (t *teller) facts(e pagejs.Entry) observe.Facts {
	f := observe.Facts{FieldKind: observe.FieldKind(e.FieldKind), Text: e.Text, Context: e.Context}
	if e.Facts == nil {
		f.Cut, f.Link, f.Form = true, observe.Opaque(), observe.Opaque()
		return f
	}
	f.Cut, f.Download = e.Facts.Cut, e.Facts.Download
	if len(e.Facts.Labels) > 0 {
		f.Labels = e.Facts.Labels
	}
	forms := make([]string, len(e.Facts.Forms))
	for i, sent := range e.Facts.Forms {
		_, forms[i], _ = strings.Cut(sent, " ")
	}
	f.Link, f.Form = t.target(e.Facts.Links), t.target(forms)
	if e.Facts.Opaque {
		f.Link = observe.Opaque()
	}
	return f
}

// target says what is true of every address; nil without one (FACT-09).
func (t *teller) target(addresses []string) *observe.Target {
	if len(addresses) == 0 {
		return nil
	}
	target := observe.Target{SameOrigin: true}
	for i, address := range addresses {
		u, err := site.ParseURL(address)
		if err != nil { // javascript:, another scheme, a private name, too long (FACT-07)
			return observe.Opaque()
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(u.Path(), "/"), "/")
		if utf8.RuneCountInString(first) > observe.MaxSegment || i > 0 && first != target.Segment {
			first = ""
		}
		target.Segment = first
		target.SameOrigin = target.SameOrigin && u.Origin() == t.origin
		target.Sensitive = target.Sensitive || t.isSensitive(u.Path())
	}
	return &target
}

func (t *teller) isSensitive(path string) bool {
	known, ok := t.sensitive[path]
	if !ok {
		known = consequence.SensitivePath(path)
		t.sensitive[path] = known
	}
	return known
}
