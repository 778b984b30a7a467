package policy

import (
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
)

func url(t *testing.T, s string) site.URL {
	t.Helper()
	u, err := site.ParseURL(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// POL-01, SCRL-01, TOOL-06: the whole default policy in one table.
func TestDecide(t *testing.T) {
	origins := site.Origins{url(t, "https://wiki.example.org").Origin(), url(t, "https://mail.example.com").Origin()}
	act := func(k action.Kind) action.Request {
		return action.Request{Tool: action.Act, Action: action.Action{Kind: k}}
	}
	scroll := func(pixels int) action.Request {
		r := act(action.Scroll)
		r.Action.DeltaY = &pixels
		return r
	}
	navigate := func(u string) action.Request { return action.Request{Tool: action.Navigate, URL: url(t, u)} }
	for _, x := range []struct {
		what string
		r    action.Request
		want Verdict
		code fault.Code
	}{
		{"observe", action.Request{Tool: action.Observe}, Allow, ""},
		{"an allowed origin", navigate("https://wiki.example.org/any?thing"), Allow, ""},
		{"the other allowed origin", navigate("https://mail.example.com"), Allow, ""},
		{"an address that names an act", navigate("https://wiki.example.org/cart/checkout?step=1"), Ask, ""},
		{"in other letters", navigate("https://wiki.example.org/Log-Out.php"), Ask, ""}, {"percent-encoded", navigate("https://wiki.example.org/a/%64elete/"), Ask, ""},
		{"in the middle", navigate("https://wiki.example.org/orders/12/cancel/now"), Ask, ""}, {"before a parameter", navigate("https://wiki.example.org/buy_now;v=1"), Ask, ""},
		{"a page about one", navigate("https://wiki.example.org/wiki/Credit_card_payment"), Allow, ""}, {"a list", navigate("https://wiki.example.org/orders"), Allow, ""},
		{"a word in the query", navigate("https://wiki.example.org/search?q=delete"), Allow, ""},
		{"an act elsewhere", navigate("https://evil.example/checkout"), Deny, fault.URLDisallowed},
		{"another origin", navigate("https://evil.example"), Deny, fault.URLDisallowed},
		{"a subdomain", navigate("https://a.wiki.example.org"), Deny, fault.URLDisallowed},
		{"the parent domain", navigate("https://example.org"), Deny, fault.URLDisallowed},
		{"no URL", action.Request{Tool: action.Navigate}, Deny, fault.URLDisallowed},
		{"click", act(action.Click), Ask, ""}, {"type", act(action.Type), Ask, ""}, {"select", act(action.Select), Ask, ""},
		{"check", act(action.Check), Ask, ""}, {"press", act(action.Press), Ask, ""},
		{"one pixel", scroll(1), Allow, ""}, {"one pixel up", scroll(-1), Allow, ""},
		{"2000 pixels", scroll(2000), Allow, ""}, {"2000 pixels up", scroll(-2000), Allow, ""},
		{"no pixel", scroll(0), Deny, fault.ActionNotAllowed}, {"2001 pixels", scroll(2001), Deny, fault.ActionNotAllowed},
		{"2001 pixels up", scroll(-2001), Deny, fault.ActionNotAllowed}, {"no distance", act(action.Scroll), Deny, fault.ActionNotAllowed},
		{"an unknown kind", act("hover"), Deny, fault.ActionNotAllowed}, {"no kind", act(""), Deny, fault.ActionNotAllowed},
		{"an upload", action.Request{Tool: action.Upload, Action: action.Action{Kind: action.Attach}}, Ask, ""}, {"an act that says it is an upload", act(action.Attach), Deny, fault.ActionNotAllowed},
		{"an unknown tool", action.Request{Tool: "browser.download"}, Deny, fault.ActionNotAllowed}, {"nothing", action.Request{}, Deny, fault.ActionNotAllowed},
	} {
		d := Decide(x.r, origins)
		if d.Verdict != x.want || (d.Refusal == nil) != (x.code == "") || d.Refusal != nil && d.Refusal.Code != x.code {
			t.Errorf("%s: %+v", x.what, d)
		}
	}
	// Without origins nothing can be opened.
	if d := Decide(navigate("https://wiki.example.org"), nil); d.Verdict != Deny {
		t.Errorf("no origins: %+v", d)
	}
	if (Decision{}).Verdict != Deny {
		t.Error("the zero decision does not deny")
	}
	// Every kind and tool that exists has an answer of its own.
	for _, k := range action.Kinds() {
		if k != action.Scroll && Decide(act(k), origins).Verdict != Ask {
			t.Errorf("%s does not ask", k)
		}
	}
}
