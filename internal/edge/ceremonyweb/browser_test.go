package ceremonyweb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/testkit/demo/person"
)

// owner is somebody at a real Chromium. Pictures of the page go to the test's
// artifacts.
type owner struct {
	*rig
	*person.Tab
	ctx context.Context
}

func (r *rig) owner(width, height int, dark bool) *owner {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 90*time.Second)
	r.t.Cleanup(cancel)
	c := person.Config{Width: width, Height: height, Dark: dark}
	if os.Geteuid() == 0 {
		c.UID = 61790
	}
	p, err := person.Launch(ctx, c)
	if errors.Is(err, person.ErrMissing) && os.Getenv("CI") != "true" {
		r.t.Skip(err)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			r.t.Error(err)
		}
	})
	tab, err := p.NewTab(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	return &owner{rig: r, Tab: tab, ctx: ctx}
}

func (o *owner) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// sees waits until an expression holds in the page.
func (o *owner) sees(expression string) {
	o.t.Helper()
	o.must(o.Wait(o.ctx, expression))
}

func (o *owner) read(expression string) string {
	o.t.Helper()
	var s string
	o.must(o.Read(o.ctx, expression, &s))
	return s
}

func (o *owner) picture(name string) {
	o.t.Helper()
	jpeg, err := o.Picture(o.ctx)
	o.must(err)
	o.must(os.WriteFile(filepath.Join(o.t.ArtifactDir(), name+".jpg"), jpeg, 0o600))
}

func (o *owner) state(name string) {
	o.t.Helper()
	o.sees(`document.body.dataset.state === "` + name + `"`)
}

// typed is all text that reached the site, in order, and how many events it took.
func (r *rig) typed() (text string, events int) {
	for _, in := range r.inputs() {
		if in.Kind == "text" {
			text += in.Text
			events++
		}
	}
	return text, events
}

// A person signs in through the page: the fragment is gone at once, a click
// lands where it was made, each character is one event, the field stays empty,
// and nothing is left in the page's storage (SURF-01, SURF-02, CER-02).
func TestPersonSignsIn(t *testing.T) {
	r := newRig(t)
	c, _, capability := r.begin()
	o := r.owner(1280, 800, false)
	o.must(o.Open(o.ctx, c.LaunchURL.Reveal()))
	if at := o.read("location.href"); at != r.origin+"/authentication/"+c.ID {
		t.Errorf("the address is %s", at)
	}
	if at := o.read("performance.getEntriesByType('resource').map(e => e.name).join()"); strings.Contains(at, capability) {
		t.Error("the capability was part of a request")
	}
	o.state("attention")
	o.sees(`document.getElementById("picture").getContext("2d").getImageData(640, 515, 1, 1).data[2] > 120`) // the drawing's button
	if got := o.read(`document.getElementById("origin").textContent`); got != "https://desk.practice.example" {
		t.Errorf("the page shows the address %q", got)
	}
	o.must(o.ClickAt(o.ctx, person.CSS("#picture"), 0.5, 0.4))
	o.sees(`document.activeElement.id === "capture"`)
	o.must(o.Type(o.ctx, "planted-pässwörd"))
	o.must(o.Press(o.ctx, "Backspace"))
	o.must(o.Press(o.ctx, "Tab"))
	o.must(o.Read(o.ctx, `(() => {
		const data = new DataTransfer();
		data.setData("text/plain", "pasted 1");
		document.getElementById("capture").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
	})()`, nil))
	o.must(o.Press(o.ctx, "ArrowDown"))
	r.until("all events", func() bool { return len(r.inputs()) >= 1+16+4 })
	in := r.inputs()
	if x, y := in[0].X, in[0].Y; in[0].Kind != "click" || x < 637 || x > 643 || y < 317 || y > 323 {
		t.Errorf("the click went to %d, %d", x, y)
	}
	if text, events := r.typed(); text != "planted-pässwördpasted 1" || events != 16+1 {
		t.Errorf("%q arrived in %d events", text, events)
	}
	var keys []string
	for _, i := range in {
		if i.Kind == "key" {
			keys = append(keys, i.Key)
		}
	}
	if fmt.Sprint(keys) != "[Backspace Tab ArrowDown]" {
		t.Errorf("the keys are %v", keys)
	}
	if left := o.read(`document.getElementById("capture").value + JSON.stringify({...localStorage, ...sessionStorage}) + document.cookie`); left != "{}" {
		t.Errorf("the page kept %q", left)
	}
	o.picture("attention-1280")
	o.must(o.Press(o.ctx, "Enter"))
	o.must(o.Click(o.ctx, person.Button("I am finished")))
	o.state("done")
	o.picture("done-1280")
	if s, err := r.service.CeremonyStatus(t.Context(), ada, c.ID); err != nil || s != "ready" {
		t.Errorf("status %s, %v", s, err)
	}
	if strings.Contains(r.log.String(), "planted") {
		t.Error("the log has typed text")
	}
	// The link is spent: opening it again says to start over.
	o.must(o.Open(o.ctx, "about:blank"))
	o.must(o.Open(o.ctx, c.LaunchURL.Reveal()))
	o.state("refused")
	o.picture("refused-1280")
}

// SURF-03: after an event that failed, what was typed behind it is dropped and
// the owner is told; the next try goes through.
func TestPersonIsTold(t *testing.T) {
	r := newRig(t)
	c, _, _ := r.begin()
	o := r.owner(1280, 800, true)
	o.must(o.Open(o.ctx, c.LaunchURL.Reveal()))
	o.state("attention")
	o.must(o.Click(o.ctx, person.CSS("#picture")))
	r.until("the click", func() bool { return len(r.inputs()) == 1 })
	r.film.fails.Store(true)
	// All at once, so that more waits behind the one that fails.
	o.must(o.Read(o.ctx, `(() => {
		const field = document.getElementById("capture");
		for (const c of "secret") {
			field.value = c;
			field.dispatchEvent(new InputEvent("input", { data: c, inputType: "insertText", bubbles: true }));
		}
	})()`, nil))
	o.sees(`!document.getElementById("notice").hidden`)
	if says := o.read(`document.getElementById("notice").textContent`); !strings.Contains(says, "Clear the field") {
		t.Errorf("the owner is told %q", says)
	}
	o.picture("notice-1280-dark")
	if text, events := r.typed(); events != 0 {
		t.Errorf("%q arrived behind a lost character", text)
	}
	o.must(o.Click(o.ctx, person.CSS("#picture")))
	o.must(o.Type(o.ctx, "again"))
	r.until("the second try", func() bool { text, _ := r.typed(); return text == "again" })
	o.sees(`document.getElementById("notice").hidden`)
}

// SURF-02 on a telephone: nothing scrolls sideways, the keys are buttons, an
// on-screen keyboard's deletion and its compositions arrive, and a dropped
// connection comes back.
func TestTelephone(t *testing.T) {
	r := newRig(t)
	c, _, _ := r.begin()
	o := r.owner(380, 780, true)
	o.must(o.Resize(o.ctx, 380, 780))
	o.must(o.Open(o.ctx, c.LaunchURL.Reveal()))
	o.state("attention")
	o.sees(`document.documentElement.scrollWidth <= innerWidth && innerWidth === 380`)
	o.picture("attention-380-dark")
	o.must(o.Click(o.ctx, person.CSS("#picture")))
	o.must(o.Read(o.ctx, `(() => {
		const field = document.getElementById("capture");
		field.dispatchEvent(new CompositionEvent("compositionstart"));
		field.value = "に";
		field.dispatchEvent(new InputEvent("input", { data: "に", isComposing: true }));
		field.value = "日本";
		field.dispatchEvent(new InputEvent("input", { data: "日本", isComposing: true }));
		field.dispatchEvent(new CompositionEvent("compositionend", { data: "日本" }));
		field.dispatchEvent(new InputEvent("beforeinput", { inputType: "deleteContentBackward", cancelable: true }));
	})()`, nil))
	for _, b := range []string{"Tab", "Backspace", "Enter"} {
		o.must(o.Click(o.ctx, person.CSS(`[data-key="`+b+`"]`)))
	}
	want := []browser.Input{{Kind: "text", Text: "日本"}, {Kind: "key", Key: "Backspace"}, {Kind: "key", Key: "Tab"}, {Kind: "key", Key: "Backspace"}, {Kind: "key", Key: "Enter"}}
	r.until("all events", func() bool { return len(r.inputs()) >= 1+len(want) })
	for i, in := range r.inputs()[1:] {
		if i >= len(want) || in != want[i] {
			t.Errorf("event %d is a %s %s", i, in.Kind, in.Key)
		}
	}
	if focus := o.read("document.activeElement.id"); focus != "capture" {
		t.Errorf("the keys took the focus to %q, and the keyboard went away", focus)
	}
	o.must(o.Click(o.ctx, person.Button("Cancel")))
	o.state("cancelled")
	o.picture("cancelled-380-dark")
	o.sees(`document.documentElement.scrollWidth <= innerWidth`)
}

// SURF-01: without a capability nothing can be pressed and the page says what
// to do.
func TestNoCapability(t *testing.T) {
	r := newRig(t)
	c, address, _ := r.begin()
	o := r.owner(380, 780, false)
	o.must(o.Resize(o.ctx, 380, 780))
	o.must(o.Open(o.ctx, address))
	o.state("refused")
	o.sees(`[...document.querySelectorAll("button, textarea")].every((e) => e.disabled)`)
	o.picture("refused-380")
	if s, err := r.service.CeremonyStatus(t.Context(), ada, c.ID); err != nil || s.Terminal() {
		t.Errorf("opening the page without a capability ended the sign-in: %s, %v", s, err)
	}
	o.must(r.service.CancelCeremony(t.Context(), ada, c.ID))
	again, _, _ := r.begin()
	o.must(o.Open(o.ctx, "about:blank"))
	o.must(o.Open(o.ctx, again.LaunchURL.Reveal()))
	o.state("attention")
	o.picture("attention-380")
}
