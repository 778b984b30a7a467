package consoleweb_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
)

// attached is an image of the session.
func (h *house) attached(session string) (artifact.Image, []byte) {
	h.t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 64, 48))
	draw.Draw(m, m.Bounds(), image.NewUniform(color.RGBA{0, 0, 250, 255}), image.Point{}, draw.Src)
	var b bytes.Buffer
	h.must(png.Encode(&b, m))
	i, err := h.images.Attach(h.t.Context(), ana, session, bytes.NewReader(b.Bytes()))
	h.must(err)
	return i, b.Bytes()
}

// askUpload puts the question of an upload, with a picture that is grey and
// green where the element is.
func (h *house) askUpload(session, profile string, i artifact.Image) string {
	h.t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 640, 360))
	draw.Draw(m, m.Bounds(), image.NewUniform(color.Gray{200}), image.Point{}, draw.Src)
	draw.Draw(m, image.Rect(260, 160, 380, 200), image.NewUniform(color.RGBA{0, 150, 0, 255}), image.Point{}, draw.Src)
	var b bytes.Buffer
	h.must(jpeg.Encode(&b, m, nil))
	id := h.ask(session, profile, "Give an image to a textbox on wiki.example.org/photos", approval.View{
		Described: true, Kind: "upload", PageOrigin: wiki, PagePath: "/photos", PageTitle: "Your photos", ElementRole: "textbox", ElementName: "Add a photo", Field: "file",
		Consequence: "file_transfer", Image: &approval.Image{ID: i.ID, Type: string(i.Type), Size: i.Size, Width: i.Width, Height: i.Height, SHA256: i.SHA256},
	})
	h.calls.show(id, browser.Picture{JPEG: b.Bytes(), Width: 640, Height: 360, Box: browser.Box{X: 260, Y: 160, Width: 120, Height: 40}})
	h.hub.Changed(ana.Scope)
	return id
}

// VIEW-02, UPL-05: the owner sees in words what an upload is, what it may lead
// to, the image itself, and the page around the element with our outline.
func TestUploadIsShown(t *testing.T) {
	h, c := newHouse(t), newChrome(t)
	profile := h.ready(wiki)
	session := h.session(profile, "helper")
	i, data := h.attached(session)
	id := h.askUpload(session, profile, i)
	logIn(h, c)
	c.until(fmt.Sprintf(`document.querySelectorAll('[data-approval="%s"] canvas').length === 2`, id))
	var seen struct {
		Text                     string
		Names                    []string
		Element, Outline, Beside []int
		Image                    []int
	}
	c.eval(fmt.Sprintf(`(() => {
		const card = document.querySelector('[data-approval="%s"]');
		const page = card.querySelector(".picture canvas");
		const at = (canvas, x, y) => [...canvas.getContext("2d").getImageData(x, y, 1, 1).data];
		return {
			text: card.innerText, names: [...card.querySelectorAll("canvas")].map((n) => n.getAttribute("role") + ": " + n.getAttribute("aria-label")),
			element: at(page, 320, 180), outline: at(page, 256, 180), beside: at(page, 100, 50), image: at(card.querySelector(".image canvas"), 20, 20),
		};
	})()`, id), &seen)
	for _, want := range []string{"May transfer a file", "Add a photo", "The agent would upload your image", fmt.Sprintf("PNG, 64 × 48, %.1f kB", float64(len(data))/1000), "the outline is ours"} {
		if !bytes.Contains([]byte(seen.Text), []byte(want)) {
			t.Errorf("%q is not in the card:\n%s", want, seen.Text)
		}
	}
	like := func(got []int, r, g, b int) bool {
		near := func(x, y int) bool { return x-y < 30 && y-x < 30 }
		return len(got) == 4 && near(got[0], r) && near(got[1], g) && near(got[2], b)
	}
	if !like(seen.Element, 0, 150, 0) || !like(seen.Outline, 0xc2, 0x18, 0x5b) || !like(seen.Beside, 200, 200, 200) || !like(seen.Image, 0, 0, 250) {
		t.Errorf("the canvases show %+v", seen)
	}
	if len(seen.Names) != 2 || seen.Names[0] == "img: " || seen.Names[1] == "img: " {
		t.Errorf("without words: %q", seen.Names)
	}
}

// UPL-02: attach and remove on the page of agents.
func TestImagesInTheConsole(t *testing.T) {
	h, c := newHouse(t), newChrome(t)
	session := h.session(h.ready(wiki), "helper")
	i, _ := h.attached(session)
	logIn(h, c)
	c.eval(`location.hash = "#/devices"`, nil)
	c.until(fmt.Sprintf(`document.querySelector("main").innerText.includes("%s")`, i.ID))
	// A person's dialog cannot be driven here; the file arrives as from one.
	c.eval(`(() => {
		const canvas = new OffscreenCanvas(9, 7);
		canvas.getContext("2d").fillRect(0, 0, 9, 7);
		canvas.convertToBlob({ type: "image/png" }).then((blob) => {
			const given = new DataTransfer();
			given.items.add(new File([blob], "holiday.png", { type: "image/png" }));
			const input = document.querySelector('main input[type="file"]');
			input.files = given.files;
			input.dispatchEvent(new Event("change"));
		});
	})()`, nil)
	c.until(`document.querySelector("main").innerText.includes("PNG, 9 × 7")`)
	list, err := h.images.List(t.Context(), ana, session)
	h.must(err)
	if len(list) != 2 {
		t.Fatalf("%d images", len(list))
	}
	c.click(fmt.Sprintf(`document.querySelector('[data-key="remove %s"]')`, i.ID))
	c.until(fmt.Sprintf(`!document.querySelector("main").innerText.includes("%s")`, i.ID))
	if list, err = h.images.List(t.Context(), ana, session); err != nil || len(list) != 1 || list[0].ID == i.ID {
		t.Errorf("%+v, %v", list, err)
	}
}
