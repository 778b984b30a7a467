package pipe_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/browser/worker/pipe"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// largest is an image of exactly the largest size.
func largest(t *testing.T) artifact.Payload {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	data := append(b.Bytes(), make([]byte, artifact.MaxSize-b.Len())...)
	return artifact.Payload{ID: ident.New(), Type: artifact.PNG, SHA256: artifact.Sum(data), Data: secret.NewBytes(data)}
}

// UPL-03, UPL-08: the largest image crosses whole; one that is not what it is
// said to be goes no further than the worker.
func TestUploadCrosses(t *testing.T) {
	r := start(t)
	r.world.Put(home, fake.Doc{Title: "Photos", Controls: []fake.Control{{Role: "textbox", Name: "Photo", Field: observe.FieldFile}}})
	d, err := r.Navigate(t.Context(), url(t, home))
	if err != nil {
		t.Fatal(err)
	}
	a := action.Action{Kind: action.Attach, ExpectedRevision: d.Revision, Ref: d.Elements[0].Ref}
	good := largest(t)
	changed := good
	changed.SHA256 = artifact.Sum(nil)
	if _, err := r.Upload(t.Context(), a, changed); !fault.Is(err, fault.ArgumentsInvalid) || len(r.world.Effects()) != 0 {
		t.Errorf("another checksum: %v, %d effects", err, len(r.world.Effects()))
	}
	if shown, err := r.Picture(t.Context(), d.Revision, a.Ref); err != nil || !shown.Valid() || shown.Box != (browser.Box{X: 280, Y: 160, Width: 80, Height: 40}) {
		t.Errorf("%+v, %v", shown.Box, err)
	}
	after, err := r.Upload(t.Context(), a, good)
	if got := r.world.Effects(); err != nil || after.Revision == d.Revision || len(got) != 1 || got[0].Value != good.SHA256 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TRUST-03, UPL-09: what a worker that was taken over answers is no picture
// that is out of bounds, and no certainty about an upload.
func TestHostileAnswers(t *testing.T) {
	hear := func(op byte, body string) *pipe.Client {
		near, far := pair(t)
		go func() {
			io.ReadFull(far, make([]byte, 14))
			far.Write(whole(3, op, 1, body))
			io.Copy(io.Discard, far)
		}()
		return pipe.NewClient(near)
	}
	jpeg := func(w, h, x, width int) string {
		return fmt.Sprintf(`{"JPEG":"/9j/4A==","Width":%d,"Height":%d,"Box":{"x":%d,"y":0,"width":%d,"height":1}}`, w, h, x, width)
	}
	for name, body := range map[string]string{
		"nothing": `{}`, "no JSON": `<svg>`, "no JPEG": `{"JPEG":"PHN2Zz4=","Width":9,"Height":9}`, "a huge one": jpeg(1<<20, 9, 0, 1), "no size": jpeg(0, 9, 0, 0),
		"a box outside": jpeg(9, 9, 5, 5), "a box to the left": jpeg(9, 9, -1, 5), "a box that overflows": jpeg(9, 9, 1<<62, 1<<62),
		"too many bytes": `{"JPEG":"/9j/` + strings.Repeat("AAAA", browser.MaxPicture/3+1) + `","Width":9,"Height":9}`,
	} {
		if p, err := hear(11, body).Picture(t.Context(), "r", "r:1"); !fault.Is(err, fault.OutputInvalid) || p.JPEG != nil {
			t.Errorf("%s: %d bytes, %v", name, len(p.JPEG), err)
		}
	}
	if p, err := hear(11, jpeg(9, 9, 4, 5)).Picture(t.Context(), "r", "r:1"); err != nil || p.Box.Width != 5 {
		t.Errorf("a good one: %+v, %v", p.Box, err)
	}
	if _, err := hear(10, `[`).Upload(t.Context(), action.Action{Kind: action.Attach}, largest(t)); !fault.Is(err, fault.OutcomeUnknown) {
		t.Errorf("an upload with a broken answer: %v", err)
	}
}
