package broker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/artifacts"
	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// gallery is a bench whose page has a file field, with one attached image.
type gallery struct {
	*bench
	images *artifacts.Artifacts
	owner  caller.Caller
	image  artifact.Image
	data   []byte
	page   string // revision
	field  string // reference
}

func newGallery(t *testing.T, change func(*broker.Config)) *gallery {
	t.Helper()
	g := &gallery{}
	g.bench = newBench(t, nil, func(c *broker.Config) {
		var err error
		g.images, err = artifacts.New(artifacts.Config{Store: c.Store, Dir: filepath.Join(t.TempDir(), "images"), Now: c.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		c.Images = g.images
		if change != nil {
			change(c)
		}
	})
	g.owner = caller.Caller{Scope: g.agent.Scope, Role: caller.Owner, Device: ident.Hex(16)}
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 6, 4))); err != nil {
		t.Fatal(err)
	}
	g.data = b.Bytes()
	g.image = g.attach(t)
	g.world.Put(home, fake.Doc{Title: "Desk", Controls: []fake.Control{{Role: "textbox", Name: "Photo", Field: observe.FieldFile}, {Role: "button", Name: "Save"}}})
	g.look(t)
	return g
}

func (g *gallery) attach(t *testing.T) artifact.Image {
	t.Helper()
	i, err := g.images.Attach(t.Context(), g.owner, g.agent.Session, bytes.NewReader(g.data))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func (g *gallery) look(t *testing.T) {
	t.Helper()
	body, err := json.Marshal(g.open(t))
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Revision string
		Elements []struct{ Ref string }
	}
	if err := json.Unmarshal(body, &v); err != nil || len(v.Elements) == 0 {
		t.Fatal(string(body), err)
	}
	g.page, g.field = v.Revision, v.Elements[0].Ref
}

func (g *gallery) upload(id string) error {
	_, err := g.call(action.Upload, map[string]string{"image_id": id, "expected_revision": g.page, "ref": g.field})
	return err
}

// decide answers the one open question.
func (g *gallery) decide(t *testing.T, d approval.Decision) approval.Approval {
	t.Helper()
	var decided approval.Approval
	err := g.store.Tx(t.Context(), g.agent.Scope, func(tx store.Tx) error {
		open, err := tx.Approvals(g.agent.Session, 10, approval.Pending)
		if err != nil || len(open) != 1 {
			return fmt.Errorf("%d open questions, %w", len(open), err)
		}
		if decided, err = open[0].Decide(d, "", g.owner.Device, g.clock.Now()); err != nil {
			return err
		}
		return tx.UpdateApproval(decided, open[0].Status)
	})
	if err != nil {
		t.Fatal(err)
	}
	return decided
}

// UPL-03, UPL-05, VIEW-02: one call, one approval of its own, one image; the
// owner is told what it is, and a scroll's policy or anything else never covers it.
func TestUpload(t *testing.T) {
	g := newGallery(t, nil)
	if err := g.upload(g.image.ID); !fault.Is(err, fault.ApprovalPending) {
		t.Fatalf("without an answer: %v", err)
	}
	if n := len(g.world.Effects()); n != 0 {
		t.Fatalf("%d effects before the owner's answer", n)
	}
	asked := g.decide(t, approval.ApproveOnce)
	v := asked.View
	if v.View != "browser.upload.v1" || v.Kind != "upload" || v.Consequence != "file_transfer" || v.ElementName != "Photo" || v.PageOrigin != "https://desk.practice.example" ||
		v.Image == nil || *v.Image != (approval.Image{ID: g.image.ID, Type: "image/png", Size: int64(len(g.data)), Width: 6, Height: 4, SHA256: g.image.SHA256}) {
		t.Errorf("the owner is shown %+v, %+v", v, v.Image)
	}
	if asked.Summary != "Give an image to a textbox on desk.practice.example/" {
		t.Errorf("summary %q", asked.Summary)
	}
	if err := g.upload(g.image.ID); err != nil {
		t.Fatal(err)
	}
	want := fake.Effect{URL: home, Kind: action.Attach, Name: "Photo", Value: artifact.Sum(g.data)}
	if got := g.world.Effects(); len(got) != 1 || got[0] != want {
		t.Errorf("effects %+v", got)
	}
	if err := g.upload(g.image.ID); err == nil || len(g.world.Effects()) != 1 {
		t.Errorf("the identical call went out again: %v", err)
	}
	// UPL-09: nothing that is kept or shown holds the bytes.
	for _, text := range []any{g.invocations(t), asked, g.broker.Diagnostics(g.agent.Scope)} {
		if body, err := json.Marshal(text); err != nil || bytes.Contains(body, []byte("iVBORw0KGgo")) {
			t.Errorf("the image is in %.200s (%v)", body, err)
		}
	}
}

func (g *gallery) invocations(t *testing.T) (list []run.Invocation) {
	t.Helper()
	err := g.store.View(t.Context(), g.agent.Scope, func(tx store.Tx) (err error) { list, err = tx.Invocations(g.agent.Session, 10); return err })
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// UPL-06: what does not resolve is not asked about, and every reason reads the
// same. What stops resolving after the answer sends nothing and keeps it.
func TestUploadNeedsItsImage(t *testing.T) {
	g := newGallery(t, nil)
	other := g.attach(t)
	var said []string
	for _, id := range []string{ident.New(), g.agent.Session} {
		err := g.upload(id)
		if !fault.Is(err, fault.ArgumentsInvalid) || !strings.Contains(err.Error(), g.image.ID) || !strings.Contains(err.Error(), other.ID) {
			t.Errorf("%v", err)
		}
		said = append(said, fault.Public(err).Public)
	}
	if said[0] != said[1] {
		t.Errorf("two answers: %q", said)
	}
	if err := g.upload(g.image.ID); !fault.Is(err, fault.ApprovalPending) {
		t.Fatal(err)
	}
	g.decide(t, approval.ApproveOnce)
	if err := g.images.Remove(t.Context(), g.owner, g.agent.Session, g.image.ID); err != nil {
		t.Fatal(err)
	}
	if err := g.upload(g.image.ID); !fault.Is(err, fault.ArgumentsInvalid) || strings.Contains(err.Error(), g.image.ID) {
		t.Errorf("a removed image: %v", err)
	}
	if n := len(g.world.Effects()); n != 0 {
		t.Errorf("%d effects", n)
	}
	g.clock.Advance(25 * time.Hour)
	if err := g.upload(other.ID); !fault.Is(err, fault.ArgumentsInvalid) || strings.Contains(err.Error(), other.ID) {
		t.Errorf("an expired image: %v", err)
	}
}

// REL-01, UPL-09: an upload that fails after it may have been sent is uncertain
// and is not repeated.
func TestUploadUncertain(t *testing.T) {
	g := newGallery(t, nil)
	if err := g.upload(g.image.ID); !fault.Is(err, fault.ApprovalPending) {
		t.Fatal(err)
	}
	g.decide(t, approval.ApproveOnce)
	g.world.OnAct(func(_ context.Context, p *fake.Page, _ action.Action) error { p.Crash(); return nil })
	if err := g.upload(g.image.ID); !fault.Is(err, fault.OutcomeUnknown) {
		t.Fatal(err)
	}
	if i := g.invocations(t)[0]; i.Tool != action.Upload || i.Outcome != run.Uncertain || i.EffectSentAt.IsZero() {
		t.Errorf("%+v", i)
	}
	if err := g.upload(g.image.ID); err == nil || len(g.world.Effects()) != 1 {
		t.Errorf("it went out again: %v", err)
	}
}

// UPL-10: without a place for images there is no such tool.
func TestUploadIsOptional(t *testing.T) {
	g := newGallery(t, func(c *broker.Config) { c.Images = nil })
	if err := g.upload(g.image.ID); !fault.Is(err, fault.ArgumentsInvalid) {
		t.Error(err)
	}
	for _, tool := range g.broker.Tools("1.9.0") {
		if tool.Name == "browser.upload" {
			t.Error("it is advertised")
		}
	}
}

// VIEW-02: a question gets the picture of its element's surroundings, for the
// owner and as long as it is open.
func TestPictures(t *testing.T) {
	g := newGallery(t, nil)
	act := func() error {
		_, err := g.call(action.Act, map[string]string{"kind": "click", "expected_revision": g.page, "ref": strings.TrimSuffix(g.field, "0") + "1"})
		return err
	}
	if err := act(); !fault.Is(err, fault.ApprovalPending) {
		t.Fatal(err)
	}
	id := g.openQuestion(t)
	p, err := g.broker.Picture(t.Context(), g.owner, id)
	if err != nil || !p.Valid() || p.Box.Width == 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	_, err = g.broker.Picture(t.Context(), g.agent, id)
	if !fault.Is(err, fault.Forbidden) {
		t.Errorf("an agent: %v", err)
	}
	stranger := g.owner
	stranger.Principal = "eve"
	for name, x := range map[string]struct {
		by caller.Caller
		id string
	}{"another owner": {stranger, id}, "another question": {g.owner, ident.New()}} {
		if _, err := g.broker.Picture(t.Context(), x.by, x.id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	g.decide(t, approval.Deny)
	if _, err := g.broker.Picture(t.Context(), g.owner, id); !fault.Is(err, fault.NotFound) {
		t.Errorf("of a closed question: %v", err)
	}
	g.broker.Upkeep(t.Context())
	if n := g.broker.Pictures(); n != 0 {
		t.Errorf("%d pictures are kept of closed questions", n)
	}
}

// Row 61 of the cases: opening an address that names an act takes the owner's
// word each time, and nothing is requested before.
func TestAddressesThatNameActs(t *testing.T) {
	g := newGallery(t, nil)
	checkout := home + "cart/checkout"
	g.world.Put(checkout, fake.Doc{Title: "Checkout"})
	requests := func() (n int) {
		for _, r := range g.world.Requests() {
			if r == checkout {
				n++
			}
		}
		return n
	}
	open := func() error {
		_, err := g.call(action.Navigate, map[string]string{"url": checkout})
		return err
	}
	for round := range 2 {
		if err := open(); !fault.Is(err, fault.ApprovalPending) || requests() != round {
			t.Fatalf("round %d: %v after %d requests", round, err, requests())
		}
		asked := g.decide(t, approval.ApproveOnce)
		if asked.View.View != "browser.navigate.v1" || asked.View.Consequence != "payment" || asked.Tool != action.Navigate {
			t.Errorf("the owner is shown %+v", asked.View)
		}
		if err := open(); err != nil || requests() != round+1 {
			t.Fatalf("round %d: %v after %d requests", round, err, requests())
		}
	}
	if err := open(); !fault.Is(err, fault.ApprovalPending) {
		t.Fatal(err)
	}
	g.decide(t, approval.Deny)
	if err := open(); !fault.Is(err, fault.ApprovalDenied) || requests() != 2 {
		t.Errorf("%v after %d requests", err, requests())
	}
}

func (g *gallery) openQuestion(t *testing.T) string {
	t.Helper()
	var id string
	err := g.store.View(t.Context(), g.agent.Scope, func(tx store.Tx) error {
		open, err := tx.Approvals(g.agent.Session, 10, approval.Pending)
		if err != nil || len(open) != 1 {
			return fmt.Errorf("%d open questions, %w", len(open), err)
		}
		id = open[0].ID
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// blind is a service that shows nothing.
type blind struct{ *fake.Service }

func (blind) Picture(ctx context.Context, _ lease.Held, _, _ string) (browser.Picture, error) {
	if _, ok := ctx.Deadline(); !ok {
		return browser.Picture{JPEG: []byte{0xff, 0xd8, 0xff, 0xd9}, Width: 9, Height: 9}, nil
	}
	return browser.Picture{JPEG: bytes.Repeat([]byte{0xff, 0xd8, 0xff}, browser.MaxPicture), Width: 9, Height: 9}, nil
}

// A question without a picture, or with one that is out of bounds, is asked all
// the same.
func TestQuestionWithoutPicture(t *testing.T) {
	g := newGallery(t, func(c *broker.Config) { c.Service = blind{c.Service.(*fake.Service)} })
	if err := g.upload(g.image.ID); !fault.Is(err, fault.ApprovalPending) {
		t.Fatal(err)
	}
	if _, err := g.broker.Picture(t.Context(), g.owner, g.openQuestion(t)); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

// What is kept of pictures is bounded; the newest stay.
func TestAlbumIsBounded(t *testing.T) {
	count, size, newest := broker.FillAlbum(100, 10)
	if count != 64 || size != 640 || !newest {
		t.Errorf("%d pictures of %d bytes, the newest there: %v", count, size, newest)
	}
	count, size, newest = broker.FillAlbum(64, browser.MaxPicture)
	if size > 8<<20 || count < 30 || !newest {
		t.Errorf("%d pictures of %d bytes, the newest there: %v", count, size, newest)
	}
}
