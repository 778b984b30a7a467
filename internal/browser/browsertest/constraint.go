package browsertest

import (
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Pages of a lesson, to which a constraint is limited.
const (
	lesson   = "https://wiki.example/lesson/one"
	onwards  = "https://wiki.example/lesson/two"
	settings = "https://wiki.example/lesson/settings"
)

func (e *env) lesson() observe.Document {
	e.Helper()
	controls := []Control{
		{Role: "button", Name: "Continue"}, {Role: "button", Name: "Delete"}, {Role: "link", Name: "Next", Opens: onwards}, {Role: "link", Name: "Away", Opens: next},
		{Role: "link", Name: "Elsewhere", Opens: other}, {Role: "textbox", Name: "Word", Field: observe.FieldText},
	}
	for _, address := range []string{lesson, onwards, settings} {
		e.site.Put(address, Doc{Title: "Lesson", Text: "A lesson", Controls: controls})
	}
	return e.navigate(lesson)
}

// limit is a constraint for the lesson.
func (e *env) limit(change ...func(*constraint.Constraint)) *constraint.Constraint {
	c := &constraint.Constraint{
		Kind: constraint.Task, Origins: e.origins[:1:1], Prefix: "/lesson", ExpiresAt: time.Now().Add(time.Hour),
		Ceiling: consequence.Unknown, MaxText: constraint.MaxText,
	}
	for _, o := range e.origins {
		if o.Host() == "wiki.example" {
			c.Origins[0] = o
		}
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func covers(e *env) {
	defer e.done()
	d, err := e.under(e.limit(), e.lesson(), action.Click, "Continue")
	if err == nil {
		d, err = e.under(e.limit(), d, action.Type, "Word", "dwa psy")
	}
	if err == nil {
		d, err = e.under(e.limit(), d, action.Click, "Next")
	}
	if err != nil || d.URL != onwards {
		e.Errorf("%q, %v", d.URL, err)
	}
	e.effects(Effect{Kind: action.Click, Name: "Continue"}, Effect{Kind: action.Type, Name: "Word", Value: "dwa psy"})
}

func refuses(e *env) {
	defer e.done()
	d := e.lesson()
	research := func(c *constraint.Constraint) { c.Kind, c.Prefix = constraint.Research, "" }
	for _, x := range []struct {
		limit *constraint.Constraint
		kind  action.Kind
		name  string
		value []string
	}{
		{e.limit(), action.Click, "Delete", nil},
		{e.limit(), action.Click, "Away", nil},
		{e.limit(), action.Click, "Elsewhere", nil},
		{e.limit(research), action.Click, "Elsewhere", nil},
		{e.limit(), action.Type, "Word", []string{"12345"}},
		{e.limit(), action.Type, "Word", []string{strings.Repeat("a", constraint.MaxText+1)}},
		{e.limit(func(c *constraint.Constraint) { c.ExpiresAt = time.Now() }), action.Click, "Continue", nil},
		{e.limit(func(c *constraint.Constraint) { c.Prefix = "/lessons" }), action.Click, "Continue", nil},
		{e.limit(func(c *constraint.Constraint) {
			*c = constraint.Constraint{Kind: constraint.Standing, Origins: c.Origins, ExpiresAt: c.ExpiresAt, Ceiling: consequence.Routine}
		}), action.Type, "Word", []string{"x"}},
	} {
		_, err := e.under(x.limit, d, x.kind, x.name, x.value...)
		e.refused(err, fault.GrantNotApplicable)
		if d, err = e.page.Observe(e.Context(), observe.Query{}); err != nil {
			e.Fatalf("observe: %v", err)
		}
	}
	_, err := e.under(e.limit(), e.navigate(settings), action.Click, "Continue")
	e.refused(err, fault.GrantNotApplicable)
	e.effects()
	if n := e.opened(next) + e.opened(other); n != 0 {
		e.Errorf("%d pages were opened", n)
	}
}

func forgets(e *env) {
	defer e.done()
	d := e.lesson()
	_, err := e.under(e.limit(), d, action.Click, "Delete")
	e.refused(err, fault.GrantNotApplicable)
	_, err = e.act(d, action.Click, "Continue")
	e.refused(err, fault.PageChanged)
	if d, err = e.page.Observe(e.Context(), observe.Query{}); err == nil {
		_, err = e.under(e.limit(), d, action.Click, "Continue")
	}
	if err != nil {
		e.Errorf("after a new observation: %v", err)
	}
	e.effects(Effect{Kind: action.Click, Name: "Continue"})
}

// secretive: facts travel beside the observation (FACT-01).
func secretive(e *env) {
	defer e.done()
	d := e.lesson()
	for _, el := range d.Elements {
		f, ok := d.Facts[el.Ref]
		switch {
		case !ok || f.Cut || f.Form != nil:
			e.Errorf("%s: %+v, %v", el.Name, f, ok)
		case el.Name == "Next" && (f.Link == nil || *f.Link != observe.Target{SameOrigin: true, Segment: "lesson"}):
			e.Errorf("Next leads to %+v", f.Link)
		case el.Name == "Elsewhere" && (f.Link == nil || f.Link.SameOrigin):
			e.Errorf("Elsewhere leads to %+v", f.Link)
		case el.Role != "link" && f.Link != nil:
			e.Errorf("%s leads to %+v", el.Name, f.Link)
		}
	}
}
