package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/testkit/demo/person"
)

// owner is the person in charge, at the console. A second browser stands for
// what the owner knows of the website: where its fields are.
type owner struct {
	browser *person.Person
	tab     *person.Tab // the console
	slides  *person.Tab // pictures of what has no page
	memory  *person.Person
}

func newOwner(ctx context.Context, devFile string) (*owner, error) {
	dev, err := devmode.Load(devFile)
	if err != nil {
		return nil, err
	}
	o := &owner{}
	if o.browser, err = person.Launch(ctx, person.Config{UID: stranger(personUID), Width: 1100, Height: 800}); err != nil {
		return nil, err
	}
	if o.memory, err = person.Launch(ctx, person.Config{UID: stranger(personUID), Width: 1280, Height: 800, Dev: dev}); err != nil {
		return nil, errors.Join(err, o.browser.Close())
	}
	if o.slides, err = o.browser.NewTab(ctx); err != nil {
		return nil, errors.Join(err, o.close())
	}
	return o, nil
}

func (o *owner) close() error { return errors.Join(o.browser.Close(), o.memory.Close()) }

// logIn opens the console with the code that the program printed.
func (o *owner) logIn(ctx context.Context, loginURL string) error {
	tab, err := o.browser.NewTab(ctx)
	if err != nil {
		return err
	}
	o.tab = tab
	if err := tab.Open(ctx, loginURL); err != nil {
		return err
	}
	if err := tab.Click(ctx, person.Button("Log in")); err != nil {
		return err
	}
	return tab.Wait(ctx, `!document.getElementById("top").hidden`)
}

func (o *owner) page(ctx context.Context, name string) error {
	if err := o.tab.Click(ctx, person.CSS(`a[data-page="`+name+`"]`)); err != nil {
		return err
	}
	return o.tab.Wait(ctx, `document.querySelector('a[data-page="`+name+`"]').getAttribute("aria-current") === "page"`)
}

// create makes a profile and returns its id.
func (o *owner) create(ctx context.Context, origin string) (string, error) {
	if err := o.page(ctx, "profiles"); err != nil {
		return "", err
	}
	if err := o.tab.Click(ctx, person.Button("New profile")); err != nil {
		return "", err
	}
	if err := o.tab.Fill(ctx, person.CSS("#origins"), origin); err != nil {
		return "", err
	}
	if err := o.tab.Click(ctx, person.Button("Create")); err != nil {
		return "", err
	}
	if err := o.tab.Wait(ctx, `document.querySelector("[data-profile]")`); err != nil {
		return "", err
	}
	var id string
	return id, o.tab.Read(ctx, `document.querySelector("[data-profile]").dataset.profile`, &id)
}

func row(profile string) person.Element { return person.CSS(`[data-profile="` + profile + `"]`) }

// signIn begins a sign-in and opens its page, as a person follows the link.
func (o *owner) signIn(ctx context.Context, profile, address, ceremony string) (*signInPage, error) {
	if err := o.page(ctx, "profiles"); err != nil {
		return nil, err
	}
	if err := o.tab.Click(ctx, person.ButtonIn(row(profile), "Sign in")); err != nil {
		return nil, err
	}
	if err := o.tab.Fill(ctx, person.CSS("#login-url"), address); err != nil {
		return nil, err
	}
	if err := o.tab.Click(ctx, person.Button("Start a browser")); err != nil {
		return nil, err
	}
	if err := o.tab.Click(ctx, person.CSS("#open-ceremony")); err != nil {
		return nil, err
	}
	tab, err := o.browser.Follow(ctx, ceremony)
	if err != nil {
		return nil, err
	}
	if err := tab.Wait(ctx, `["live", "attention"].includes(document.body.dataset.state)`); err != nil {
		return nil, err
	}
	return &signInPage{owner: o, tab: tab}, nil
}

// decide answers the question that waits: "Approve once" or "Deny". look is
// called with the question on the screen.
func (o *owner) decide(ctx context.Context, word string, look func() error) error {
	const open = `document.querySelector("[data-approval]:not(.decided)")`
	if err := o.page(ctx, "approvals"); err != nil {
		return err
	}
	if err := o.tab.Wait(ctx, open); err != nil {
		return err
	}
	if err := o.tab.Read(ctx, "void "+open+`.scrollIntoView({ block: "center", behavior: "instant" })`, nil); err != nil {
		return err
	}
	if err := look(); err != nil {
		return err
	}
	return o.tab.Click(ctx, person.ButtonIn(open, word))
}

// revoke takes the profile away from every agent.
func (o *owner) revoke(ctx context.Context, profile string) error {
	return o.confirm(ctx, profile, "Revoke")
}

// remove deletes the revoked profile.
func (o *owner) remove(ctx context.Context, profile string) error {
	if err := o.confirm(ctx, profile, "Delete"); err != nil {
		return err
	}
	return o.tab.Wait(ctx, `!document.querySelector('[data-profile="`+profile+`"]')`)
}

func (o *owner) confirm(ctx context.Context, profile, word string) error {
	if err := o.page(ctx, "profiles"); err != nil {
		return err
	}
	if err := o.tab.Click(ctx, person.ButtonIn(row(profile), word)); err != nil {
		return err
	}
	if err := o.tab.Click(ctx, person.Button(word)); err != nil { // now the one in the dialog
		return err
	}
	return o.tab.Wait(ctx, `!document.querySelector("dialog[open]")`)
}

// state is the word of the profile's state on the page.
func (o *owner) state(ctx context.Context, profile, word string) error {
	if err := o.page(ctx, "profiles"); err != nil {
		return err
	}
	return o.tab.Wait(ctx, `[...document.querySelectorAll('[data-profile="`+profile+`"] .chip')].some((c) => c.textContent === "`+word+`")`)
}

// spot is where something is on a page of the website, and its colour.
type spot struct {
	X, Y   float64
	Colour [3]int
}

// recall is where the owner knows an element to be, on a page of that size.
func (o *owner) recall(ctx context.Context, address, selector string, width, height int) (spot, error) {
	tab, err := o.memory.NewTab(ctx)
	if err != nil {
		return spot{}, err
	}
	defer tab.Close(ctx)
	if err := tab.Resize(ctx, width, height); err != nil {
		return spot{}, err
	}
	if err := tab.Open(ctx, address); err != nil {
		return spot{}, err
	}
	var s *spot
	err = tab.Read(ctx, fmt.Sprintf(`(() => {
		const e = document.querySelector("main " + %[1]q) ?? document.querySelector(%[1]q);
		if (!e) return null;
		const r = e.getBoundingClientRect();
		const c = getComputedStyle(e).backgroundColor.match(/\d+/g).slice(0, 3).map(Number);
		return { X: r.left + Math.min(r.width / 2, 12), Y: r.top + r.height / 2, Colour: c };
	})()`, selector), &s)
	if err == nil && s == nil {
		err = fmt.Errorf("there is no %s on %s", selector, address)
	}
	if err != nil {
		return spot{}, err
	}
	return *s, nil
}

// slide is a picture of what the agent asked and was told.
func (o *owner) slide(ctx context.Context, title string, lines ...string) ([]byte, error) {
	var page strings.Builder
	if err := slideTemplate.Execute(&page, map[string]any{"Title": title, "Lines": lines}); err != nil {
		return nil, err
	}
	if err := o.slides.Show(ctx, page.String()); err != nil {
		return nil, err
	}
	return o.slides.Picture(ctx)
}
