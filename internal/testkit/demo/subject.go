package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/mediawiki"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

// subject is a website under the story: where things are, what the owner types
// to sign in, and how the website itself counts effects.
type subject struct {
	name    string
	origin  string
	signIn  string                                     // address of the sign-in form
	enter   func(context.Context, *signInPage) error   // what the owner does there
	home    string                                     // what the agent opens first
	shows   string                                     // text on home for those who are signed in
	known   func(mark int) error                       // nil if the site itself knew the visitor since the mark
	mark    func() int                                 // the site's count of what happened so far
	form    string                                     // page with the form that is edited
	field   string                                     // how the name of the field begins
	button  string                                     // how the name of the button that saves begins
	effects func(context.Context) (int, string, error) // how many saves the site has seen, and the newest one's text
	secrets func() []string                            // what must be nowhere afterwards
}

func practiceSubject(s *practice.Site) subject {
	desk := func(path string) string { return practice.URL(practice.Desk, path) }
	const name = "mira"
	account, _ := s.Account(name)
	return subject{
		name: "Practice site", origin: desk(""), signIn: desk("/signin"), home: desk("/tickets"), shows: "Printer on floor two",
		enter: func(ctx context.Context, p *signInPage) error {
			mark := s.Mark()
			if err := p.fill(ctx, desk("/signin"), "#username", "button", name); err != nil {
				return err
			}
			if err := p.password(ctx, account.Password); err != nil {
				return err
			}
			if err := waitFor(ctx, "the one-time code", func() bool { return s.Code(name) != "" && asked(s, "/signin/code", mark) }); err != nil {
				return err
			}
			if err := p.fill(ctx, desk("/signin/code"), "#code", "button", s.Code(name)); err != nil {
				return err
			}
			return p.tab.Press(ctx, "Enter")
		},
		mark: s.Mark,
		known: func(mark int) error {
			for _, e := range s.Effects(practice.DeviceKnown) {
				if e.N > mark && e.User == name {
					return nil
				}
			}
			return fmt.Errorf("the site did not see its cookie together with its localStorage item")
		},
		form: desk("/tickets/new"), field: "Title", button: "Save ticket",
		effects: func(context.Context) (int, string, error) {
			made := s.Effects(practice.TicketCreated)
			if len(made) == 0 {
				return 0, "", nil
			}
			return len(made), made[len(made)-1].Detail, nil
		},
		secrets: s.Secrets,
	}
}

// asked reports whether the path was asked for after the mark.
func asked(s *practice.Site, path string, mark int) bool {
	for _, r := range s.Requests(practice.Desk) {
		if r.N > mark && r.Path == path && r.Method == "GET" {
			return true
		}
	}
	return false
}

func wikiSubject(w *mediawiki.Wiki) subject {
	const page = "Main Page"
	seen := func(mark int, want func(mediawiki.Visit) bool) bool {
		for i, v := range w.Visits() {
			if i >= mark && want(v) {
				return true
			}
		}
		return false
	}
	mark := func() int { return len(w.Visits()) }
	return subject{
		name: "MediaWiki", origin: "https://" + w.Host, signIn: w.SignInURL(), home: w.PageURL(page), shows: w.User,
		enter: func(ctx context.Context, p *signInPage) error {
			since := mark()
			if err := p.fill(ctx, w.SignInURL(), "#wpName1", "#wpLoginAttempt", w.User); err != nil {
				return err
			}
			before, err := p.points(ctx)
			if err != nil {
				return err
			}
			if err := p.password(ctx, w.Password); err != nil {
				return err
			}
			if err := waitFor(ctx, "the second step", func() bool {
				return seen(since, func(v mediawiki.Visit) bool { return v.Method == "POST" })
			}); err != nil {
				return err
			}
			if err := p.turned(ctx, before, manyPoints); err != nil {
				return err
			}
			return p.answer(ctx, w.Code(time.Now()))
		},
		mark: mark,
		known: func(since int) error {
			if seen(since, func(v mediawiki.Visit) bool { return v.User == w.User }) {
				return nil
			}
			return fmt.Errorf("MediaWiki rendered no page for %s", w.User)
		},
		form: w.EditURL(page), field: "Wikitext source editor", button: "Save",
		effects: func(ctx context.Context) (int, string, error) {
			p, err := w.Page(ctx, page)
			return len(p.Revisions), strings.TrimSpace(p.Text), err
		},
		secrets: w.Secrets,
	}
}

// waitFor polls the site's own record.
func waitFor(ctx context.Context, what string, ready func() bool) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for !ready() {
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %w", what, ctx.Err())
		}
	}
	return nil
}
