package sessionapi_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/servicetest"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/policy"
)

// BenchmarkObserve compares one observation through the socket with the same
// one in process; the browser is a fake, so the difference is the wire's.
func BenchmarkObserve(b *testing.B) {
	r := newRig(b)
	servicetest.Website(r.world)
	origins, err := site.ParseOrigins([]string{"https://desk.practice.example"})
	if err != nil {
		b.Fatal(err)
	}
	key := lease.Key{Scope: caller.Scope{Tenant: "local", Principal: "ada"}, RunID: "run", Attempt: 1, Origins: origins}
	l, err := r.client.Acquire(b.Context(), key, false, time.Now().Add(10*time.Minute))
	if err != nil {
		b.Fatal(err)
	}
	call := func(b *testing.B, s browser.Service, tool action.Tool, arguments string) {
		q, err := action.Prepare(tool, json.RawMessage(arguments))
		if err != nil {
			b.Fatal(err)
		}
		p, err := grant.FromPolicy(policy.Decision{Verdict: policy.Allow}, q)
		if err != nil {
			b.Fatal(err)
		}
		h, err := lease.Hold(l.Ref, 1, l.ExpiresAt, time.Now())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Do(b.Context(), h, p, q); err != nil {
			b.Fatal(err)
		}
	}
	call(b, r.client, action.Navigate, `{"url":"`+servicetest.Home+`"}`)
	for name, s := range map[string]browser.Service{"socket": r.client, "in process": r.service} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				call(b, s, action.Observe, `{}`)
			}
		})
	}
}
