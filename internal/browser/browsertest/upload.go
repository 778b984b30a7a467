package browsertest

import (
	"bytes"
	"image"
	"image/png"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// photos is a page with a file field, which reports the SHA-256 of what it gets.
const photos = "https://wiki.example/photos"

func (e *env) photos() observe.Document {
	e.Helper()
	e.site.Put(photos, Doc{Title: "Photos", Controls: []Control{
		{Role: "textbox", Name: "Photo", Field: observe.FieldFile}, {Role: "textbox", Name: "Note", Field: observe.FieldText},
	}})
	return e.navigate(photos)
}

// holiday is an image.
func (e *env) holiday() artifact.Payload {
	e.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 12, 8))); err != nil {
		e.Fatalf("%v", err)
	}
	return artifact.Payload{ID: ident.New(), Type: artifact.PNG, SHA256: artifact.Sum(b.Bytes()), Data: secret.NewBytes(b.Bytes())}
}

func (e *env) upload(d observe.Document, name string, image artifact.Payload) (observe.Document, error) {
	e.Helper()
	for _, el := range d.Elements {
		if el.Name == name {
			return e.page.Upload(e.Context(), action.Action{Kind: action.Attach, ExpectedRevision: d.Revision, Ref: el.Ref}, image)
		}
	}
	e.Fatalf("no element %q", name)
	return observe.Document{}, nil
}

func uploads(e *env) {
	defer e.done()
	d, image := e.photos(), e.holiday()
	after, err := e.upload(d, "Photo", image)
	if err != nil || after.Revision == d.Revision || after.Title != "Photos" {
		e.Errorf("%q after %q, %v", after.Revision, d.Revision, err)
	}
	e.effects(Effect{Kind: action.Attach, Name: "Photo", Value: image.SHA256})
}

func keepsImages(e *env) {
	defer e.done()
	d, image := e.photos(), e.holiday()
	_, err := e.upload(observe.Document{Revision: ident.Hex(16), Elements: d.Elements}, "Photo", image)
	e.refused(err, fault.PageChanged)
	changed := image
	changed.SHA256 = artifact.Sum(nil)
	_, err = e.upload(d, "Photo", changed)
	e.refused(err, fault.ArgumentsInvalid)
	page := image
	page.Data = secret.NewBytes([]byte("<!doctype html>"))
	page.SHA256 = artifact.Sum(page.Data.Reveal())
	_, err = e.upload(d, "Photo", page)
	e.refused(err, fault.ArgumentsInvalid)
	_, err = e.upload(d, "Note", image)
	e.refused(err, fault.ActionNotAllowed)
	a := action.Action{Kind: action.Click, ExpectedRevision: d.Revision, Ref: d.Elements[0].Ref}
	if _, err = e.page.Upload(e.Context(), a, image); err == nil {
		e.Errorf("a click took an image")
	}
	e.effects()
}

func pictures(e *env) {
	defer e.done()
	d := e.photos()
	p, err := e.page.Picture(e.Context(), d.Revision, d.Elements[1].Ref)
	if err != nil || !p.Valid() || p.Box.Width == 0 || p.Box.Height == 0 {
		e.Errorf("%d bytes, %d x %d, %+v, %v", len(p.JPEG), p.Width, p.Height, p.Box, err)
	}
	if _, err := e.act(d, action.Type, "Note", "still there"); err != nil {
		e.Errorf("the observation is no longer good: %v", err)
	}
	e.effects(Effect{Kind: action.Type, Name: "Note", Value: "still there"})
	_, err = e.page.Picture(e.Context(), d.Revision, d.Elements[1].Ref)
	e.refused(err, fault.PageChanged)
}
