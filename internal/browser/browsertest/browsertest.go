// Package browsertest is the contract of browser.Page: the same cases for the
// fake, for a real Chromium, and for one behind a process boundary (GATE-01,
// CAP-03 to CAP-07, CONS-01 to CONS-04, DENY-03, FACT-01, GATE-03, GATE-06, REL-02). Each case asks the
// site what happened and does not take the page's word for it.
package browsertest

import (
	"context"
	"runtime"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Control is one control of a page of the contract's site.
type Control struct {
	Role, Name string // button, link or textbox
	Disabled   bool
	Field      observe.FieldKind // FieldNone when empty
	Opens      string            // URL that a click opens
}

// Doc is a page of the contract's site.
type Doc struct {
	Title, Text string
	Challenge   bool // a sign-in challenge is on screen
	Controls    []Control
}

// Effect is one input that reached a page, as the site saw it: a click on a
// button, a text that a field holds, or a file that one was given, whose value is
// its SHA-256.
type Effect struct {
	Kind  action.Kind // Click, Type or Attach
	Name  string
	Value string
}

// Site is a website with an independent record. A URL without a page does not
// answer.
type Site interface {
	Put(url string, d Doc)
	// Effects is what reached the pages; it waits until at least n effects
	// have, or a deadline has passed.
	Effects(n int) []Effect
	// Opened is how often the URL was asked for.
	Opened(url string) int
}

// Open starts a fresh page on a fresh site. ctx bounds the start only. The origins are those the main
// frame may visit; other hosts of the site exist, too.
type Open func(ctx context.Context, origins site.Origins) (browser.Page, Site, error)

// T is what a case needs of *testing.T.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// fresh are the cases that need a page of their own.
var fresh = map[string]bool{
	"CAP-03 a session goes from one browser to the next": true,
	"READY-01 evidence follows the page":                 true,
	"REL-02 after the end nothing is done":               true,
}

// Run holds the pages that open makes to the contract. Cases that do not need a
// fresh page share one, because starting a browser is most of what a case
// costs; after a case that failed they get another.
func Run(t *testing.T, open Open) {
	shared := func() *env {
		e := begin(t, open)
		t.Cleanup(e.done)
		return e
	}
	var kept *env
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if fresh[c.name] {
				c.run(begin(t, open))
				return
			}
			if kept == nil {
				kept = shared()
			}
			c.run(kept.lend(t))
		})
		if t.Failed() {
			kept = nil
		}
	}
}

// Failures runs the contract, each case with a fresh page, and returns the names of the cases that failed.
// It exists to show that broken pages are caught.
func Failures(ctx context.Context, open Open) []string {
	var failed []string
	for _, c := range cases {
		r := &recorder{ctx: ctx}
		done := make(chan struct{})
		go func() { // Fatalf ends the goroutine
			defer close(done)
			c.run(begin(r, open))
		}()
		<-done
		if r.failed {
			failed = append(failed, c.name)
		}
	}
	return failed
}

type recorder struct {
	ctx    context.Context
	failed bool
}

func (r *recorder) Helper()                  {}
func (r *recorder) Errorf(string, ...any)    { r.failed = true }
func (r *recorder) Fatalf(string, ...any)    { r.failed = true; runtime.Goexit() }
func (r *recorder) Context() context.Context { return r.ctx }

// Hosts are the names that the contract's site answers to.
func Hosts() []string { return []string{"wiki.example", "login.example", "other.example"} }
