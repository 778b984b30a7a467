package servicetest

import (
	"bytes"
	"image"
	"image/png"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Photos is a page with a file field.
const Photos = "https://desk.practice.example/photos"

// noise is an image of several megabytes, past every bound but that of uploads.
func (e *env) noise() artifact.Payload {
	e.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, 1000, 1000))
	seed := uint32(3)
	for i := range m.Pix {
		seed = seed*1664525 + 1013904223
		m.Pix[i] = byte(seed >> 24)
	}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.NoCompression}
	if err := encoder.Encode(&b, m); err != nil || b.Len() > artifact.MaxSize {
		e.Fatalf("%d bytes, %v", b.Len(), err)
	}
	return artifact.Payload{ID: ident.New(), Type: artifact.PNG, SHA256: artifact.Sum(b.Bytes()), Data: secret.NewBytes(b.Bytes())}
}

// give uploads the image to the only control of the document.
func (e *env) give(ref string, sequence int64, d observe.Document, image artifact.Payload) (observe.Document, error) {
	e.Helper()
	r := e.uploadOf(d, image)
	h, err := lease.Hold(ref, sequence, e.Now().Add(time.Minute), e.Now())
	if err != nil {
		e.Fatalf("hold: %v", err)
	}
	return e.Service.Upload(e.Context(), h, e.permit(r), r, image)
}

func (e *env) uploadOf(d observe.Document, image artifact.Payload) action.Request {
	e.Helper()
	return e.request(action.Upload, map[string]string{"image_id": image.ID, "expected_revision": d.Revision, "ref": d.Elements[0].Ref}).Bound(image.SHA256)
}

func (e *env) photos(ref string) observe.Document {
	e.Helper()
	e.World.Put(Photos, fake.Doc{Title: "Photos", Controls: []fake.Control{{Role: "textbox", Name: "Photo", Field: observe.FieldFile}}})
	return e.open(ref, Photos)
}

func uploadOnce(e *env) {
	l := e.acquire("run")
	d, image := e.photos(l.Ref), e.noise()
	sum := image.SHA256
	after, err := e.give(l.Ref, l.Sequence, d, image)
	if err != nil || after.Revision == d.Revision {
		e.Fatalf("%q after %q, %v", after.Revision, d.Revision, err)
	}
	want := fake.Effect{URL: Photos, Kind: action.Attach, Name: "Photo", Value: sum}
	if got := e.World.Effects(); len(got) != 1 || got[0] != want {
		e.Errorf("effects %+v, want %+v", got, want)
	}
	_, err = e.give(l.Ref, l.Sequence, after, image)
	e.refused("a repeated number", err, fault.OutcomeUnknown)
	if n := len(e.World.Effects()); n != 1 {
		e.Errorf("%d effects, want 1", n)
	}
	if next := e.acquire("run").Sequence; next != l.Sequence+1 {
		e.Errorf("the next number is %d after %d", next, l.Sequence)
	}
}

func uploadGuarded(e *env) {
	l := e.acquire("run")
	d, image := e.photos(l.Ref), e.noise()
	r := e.uploadOf(d, image)
	h, err := lease.Hold(l.Ref, l.Sequence, e.Now().Add(time.Minute), e.Now())
	if err != nil {
		e.Fatalf("hold: %v", err)
	}
	otherBytes, otherID, otherType := image, image, image
	otherBytes.SHA256 = artifact.Sum(nil)
	otherID.ID = ident.New()
	otherType.Type = artifact.JPEG
	for what, bad := range map[string]artifact.Payload{"another checksum": otherBytes, "another image": otherID, "another type": otherType, "no image": {}} {
		_, err := e.Service.Upload(e.Context(), h, e.permit(r), r, bad)
		e.refused(what, err)
	}
	_, err = e.Service.Upload(e.Context(), h, e.permit(e.click(d)), r, image)
	e.refused("the permit of another call", err, fault.ActionNotAllowed)
	_, err = e.Service.Upload(e.Context(), lease.Held{}, e.permit(r), r, image)
	e.refused("no lease", err, fault.ActionNotAllowed)
	_, err = e.Service.Do(e.Context(), h, e.permit(r), r)
	e.refused("an upload without its image", err, fault.ActionNotAllowed)
	if n := len(e.World.Effects()); n != 0 {
		e.Errorf("%d effects", n)
	}
	if _, err := e.give(l.Ref, l.Sequence, d, image); err != nil {
		e.Errorf("after the refusals: %v", err)
	}
}

func pictures(e *env) {
	l := e.acquire("run")
	d := e.open(l.Ref, Home)
	show := func(ref, revision string) error {
		h, err := lease.Hold(ref, l.Sequence, e.Now().Add(time.Minute), e.Now())
		if err != nil {
			e.Fatalf("hold: %v", err)
		}
		p, err := e.Service.Picture(e.Context(), h, revision, d.Elements[0].Ref)
		if (err == nil) != p.Valid() {
			e.Errorf("%d bytes beside %v", len(p.JPEG), err)
		}
		return err
	}
	if err := show(l.Ref, d.Revision); err != nil {
		e.Errorf("picture: %v", err)
	}
	e.refused("another revision", show(l.Ref, ident.Hex(16)), fault.PageChanged)
	e.refused("no such lease", show(ident.Token(32), d.Revision), fault.ProfileUnavailable)
	if next := e.acquire("run").Sequence; next != l.Sequence {
		e.Errorf("a picture used up a number: %d after %d", next, l.Sequence)
	}
	if _, err := e.do(l.Ref, l.Sequence, e.click(d)); err != nil {
		e.Errorf("the act that it was of: %v", err)
	}
}
