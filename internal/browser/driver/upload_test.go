package driver_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// holiday is a PNG whose bytes are unlike any other.
func holiday(t testing.TB) artifact.Payload {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 40, 30))
	for x := range 40 {
		for y := range 30 {
			m.Set(x, y, color.RGBA{uint8(x * 6), uint8(y * 8), uint8(x * y), 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return artifact.Payload{ID: ident.New(), Type: artifact.PNG, SHA256: artifact.Sum(b.Bytes()), Data: secret.NewBytes(b.Bytes())}
}

func (b *bench) upload(t testing.TB, d observe.Document, name string, image artifact.Payload) (observe.Document, error) {
	t.Helper()
	return b.page.Upload(t.Context(), action.Action{Kind: action.Attach, ExpectedRevision: d.Revision, Ref: find(t, d, name)}, image)
}

// tell sends what an input got to the site, bytes and all.
const tell = say + `<script>const tell = async (i, e) => { const f = i.files[0];
	await fetch('/effect?' + encodeURIComponent([i.files.length, f?.name, f?.type, e.isTrusted].join()), {method: 'POST', body: f}) }</script>`

// got lists what tell sent: its words, and whether the bytes are the image's.
func (b *bench) got(image artifact.Payload) (words string, whole bool) {
	for _, r := range b.Requests(host) {
		if r.Path == "/effect" && r.Method == "POST" {
			words += r.Query + " "
			whole = r.Body == string(image.Data.Reveal())
		}
	}
	return strings.TrimSpace(strings.NewReplacer("%2C", ",", "%2F", "/").Replace(words)), whole
}

// left lists the files that are in the browser's place for uploads.
func left(t testing.TB, home string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(home, "uploads"), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !e.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// UPL-02, UPL-03, UPL-07: every shape of control that gives a page a file gives
// it this file, once, under our name, and as a person would.
func TestUpload(t *testing.T) {
	for name, body := range map[string]string{
		"native":         `<input type=file aria-label=Photo accept="image/*" onchange="tell(this,event)">`,
		"native, open":   `<input type=file aria-label=Photo multiple onchange="tell(this,event)">`,
		"label, inside":  `<label>Photo <input type=file accept=".png,.gif" style="display:none" onchange="tell(this,event)"></label>`,
		"label, apart":   `<label for=f style="border:1px solid;padding:9px">Photo</label><input id=f type=file hidden onchange="tell(this,event)">`,
		"button, hidden": `<button onclick="f.click()">Photo</button><input id=f type=file style="display:none" onchange="tell(this,event)">`,
		"button, made":   `<button onclick="const i=document.createElement('input');i.type='file';i.onchange=(e)=>tell(i,e);i.click()">Photo</button>`,
		"zone":           `<div role=button tabindex=0 style="width:300px;height:90px;border:1px dashed" onclick="f.click()">Photo</div><input id=f type=file style="opacity:0;width:1px;height:1px;position:absolute;left:-99px" onchange="tell(this,event)">`,
		"picker":         `<button onclick="f.showPicker()">Photo</button><input id=f type=file style="visibility:hidden" onchange="tell(this,event)">`,
		"shadow":         `<x-up></x-up><script>const r=document.querySelector('x-up').attachShadow({mode:'open'});r.innerHTML='<button>Photo</button><input type=file hidden>';const i=r.lastChild;i.onchange=(e)=>tell(i,e);r.firstChild.onclick=()=>i.click()</script>`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			photo := holiday(t)
			d := b.open(t, "/upload", tell+body)
			after, err := b.upload(t, d, "Photo", photo)
			if err != nil {
				t.Fatal(err)
			}
			if after.Revision == "" || after.Revision == d.Revision {
				t.Error("no new observation")
			}
			want := "1," + photo.Name() + ",image/png,true"
			eventually(t, "the file", func() bool { words, _ := b.got(photo); return words != "" })
			if words, whole := b.got(photo); words != want || !whole {
				t.Errorf("the site got %q (whole: %v), want %q", words, whole, want)
			}
		})
	}
}

// UPL-04: a form keeps the file until it is sent, which is another act. What
// the page could read is gone with its document.
func TestUploadForm(t *testing.T) {
	var home string
	b := newBench(t, func(c *driver.Config) { home = c.Home })
	photo := holiday(t)
	b.Page(host+"/send", `<p>Thanks</p>`)
	d := b.open(t, "/form", `<form method=post action=/send enctype="multipart/form-data"><input type=file name=photo aria-label=Photo><button>Send</button></form>`)
	d, err := b.upload(t, d, "Photo", photo)
	if err != nil {
		t.Fatal(err)
	}
	if b.Count(host, "/send") != 0 {
		t.Error("choosing a file sent the form")
	}
	kept := left(t, home)
	if len(kept) != 1 || filepath.Base(kept[0]) != photo.Name() {
		t.Fatalf("for the page there is %v", kept)
	}
	if info, err := os.Stat(kept[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	if d, err = b.act(t, d, action.Click, "Send"); err != nil || !strings.Contains(d.Text, "Thanks") {
		t.Fatal(d.Text, err)
	}
	var sent string
	for _, r := range b.Requests(host) {
		if r.Path == "/send" {
			sent += r.Body
		}
	}
	if !strings.Contains(sent, string(photo.Data.Reveal())) || strings.Count(sent, photo.Name()) != 1 {
		t.Errorf("the form sent %d bytes without the image", len(sent))
	}
	if _, err := b.page.Observe(t.Context(), observe.Query{}); err != nil {
		t.Fatal(err)
	}
	if files := left(t, home); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
	d = b.open(t, "/again", `<input type=file aria-label=Photo>`)
	if _, err := b.upload(t, d, "Photo", photo); err != nil {
		t.Fatal(err)
	}
	if err := b.page.Close(); err != nil {
		t.Fatal(err)
	}
	if files := left(t, home); len(files) != 0 {
		t.Errorf("left behind by the browser: %v", files)
	}
}

// CAP-06, UPL-02: what is refused sends nothing and leaves nothing.
func TestUploadRefuses(t *testing.T) {
	var home string
	b := newBench(t, func(c *driver.Config) { home = c.Home })
	b.Page(host+"/inner", `<input type=file aria-label=Photo onchange="parent.say('inner-got')">`)
	photo := holiday(t)
	for _, x := range []struct {
		name, body, change string
		code               fault.Code
	}{
		{"another type", `<input type=file aria-label=Photo accept=".pdf,video/*" onchange="say('bad')">`, ``, fault.ActionNotAllowed},
		{"a folder", `<input type=file aria-label=Photo webkitdirectory onchange="say('bad')">`, ``, fault.ActionNotAllowed},
		{"disabled", `<input type=file aria-label=Photo disabled onchange="say('bad')">`, ``, fault.ElementNotFound},
		{"a text field", `<input aria-label=Photo onclick="say('bad')">`, ``, fault.ActionNotAllowed},
		{"a check box", `<input type=checkbox aria-label=Photo onclick="say('bad')">`, ``, fault.ActionNotAllowed},
		{"an editor", `<div contenteditable aria-label=Photo onclick="say('bad')">x</div>`, ``, fault.ActionNotAllowed},
		{"a frame", `<iframe src=/inner></iframe>`, ``, fault.ActionNotAllowed},
		{"another program", `<a href="mailto:x@y.example" onclick="say('bad')">Photo</a>`, ``, fault.ActionNotAllowed},
		{"renamed", `<input type=file id=f aria-label=Photo onchange="say('bad')">`, `f.setAttribute('aria-label','Passport')`, fault.PageChanged},
		{"covered", `<input type=file aria-label=Photo onchange="say('bad')">`, `document.body.insertAdjacentHTML('beforeend','<div style="position:fixed;inset:0;background:#eee"></div>')`, fault.ElementNotFound},
		{"hidden", `<input type=file id=f aria-label=Photo onchange="say('bad')">`, `f.style.display='none'`, fault.ElementNotFound},
		{"gone", `<input type=file id=f aria-label=Photo onchange="say('bad')">`, `f.replaceWith(f.cloneNode(true))`, fault.ElementNotFound},
		{"narrowed", `<input type=file id=f aria-label=Photo onchange="say('bad')">`, `f.accept='.pdf'`, fault.ActionNotAllowed},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := b.changed(t, strings.ReplaceAll(x.name, " ", ""), say+x.body, x.change)
			_, err := b.upload(t, d, "Photo", photo)
			refused(t, err, x.code)
			b.unharmed(t, "bad")
			b.unharmed(t, "inner-got")
			if files := left(t, home); len(files) != 0 {
				t.Errorf("left behind: %v", files)
			}
		})
	}
	t.Run("an old revision", func(t *testing.T) {
		d := b.open(t, "/old", `<input type=file aria-label=Photo>`)
		if _, err := b.page.Observe(t.Context(), observe.Query{}); err != nil {
			t.Fatal(err)
		}
		_, err := b.upload(t, d, "Photo", photo)
		refused(t, err, fault.PageChanged)
	})
	t.Run("UPL-08 an image that is none", func(t *testing.T) {
		d := b.open(t, "/none", tell+`<input type=file aria-label=Photo onchange="tell(this,event)">`)
		bad := photo
		bad.Data = secret.NewBytes([]byte("\x89PNG\r\n\x1a\nnot"))
		_, err := b.upload(t, d, "Photo", bad)
		refused(t, err, fault.ArgumentsInvalid)
		b.unharmed(t, photo.ID)
	})
}

// UPL-09: after the click there is no certain failure, and the image goes to
// no input that is not the observed document's.
func TestUploadChooserIsUncertain(t *testing.T) {
	b := newBench(t, nil)
	b.Page(host+"/inner", `<input type=file id=f onchange="parent.say('inner-got')">`)
	photo := holiday(t)
	for name, body := range map[string]string{
		"nothing is asked":      `<button onclick="say('clicked')">Photo</button>`,
		"a frame asks":          `<button onclick="say('clicked');frames[0].document.getElementById('f').click()">Photo</button><iframe src=/inner></iframe>`,
		"for another type":      `<button onclick="say('clicked');f.click()">Photo</button><input id=f hidden type=file accept=.pdf onchange="say('bad')">`,
		"for a folder":          `<button onclick="say('clicked');f.click()">Photo</button><input id=f hidden type=file webkitdirectory onchange="say('bad')">`,
		"not through an input":  `<button onclick="say('clicked');showOpenFilePicker().then(()=>say('bad'),()=>0)">Photo</button>`,
		"the page leaves first": `<button onclick="say('clicked');location='/elsewhere'">Photo</button>`,
	} {
		t.Run(name, func(t *testing.T) {
			b.Page(host+"/"+ident.Hex(4), "")
			d := b.open(t, "/"+ident.Hex(6), say+body)
			before := strings.Count(b.effects(), "clicked")
			_, err := b.upload(t, d, "Photo", photo)
			refused(t, err, fault.OutcomeUnknown)
			eventually(t, "the click", func() bool { return strings.Count(b.effects(), "clicked") > before })
			b.unharmed(t, "bad")
			b.unharmed(t, "inner-got")
		})
	}
	t.Run("DENY-01 any other click that asks for a file is told that there is none", func(t *testing.T) {
		d := b.open(t, "/cancel", say+`<button onclick="f.click()">Photo</button><input id=f hidden type=file onchange="say('bad')" oncancel="say('cancelled')">`)
		if _, err := b.act(t, d, action.Click, "Photo"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "cancelled", func() bool { return strings.Contains(b.effects(), "cancelled") })
		b.unharmed(t, "bad")
	})
}

// VIEW-02: a picture shows the element where the box says, and the page
// notices nothing.
func TestPicture(t *testing.T) {
	b := newBench(t, nil)
	const button = `<button id=x style="position:absolute;left:700px;top:%s;width:120px;height:50px;border:0;background:rgb(250,0,0);color:rgb(250,0,0)">Pay</button>`
	watch := `<script>for (const e of ['resize','scroll','focus','blur','visibilitychange','mousemove']) addEventListener(e, () => say('noticed-' + e), true);</script>`
	for name, x := range map[string]struct{ top, more string }{
		"in the middle": {"400px", ""}, "at the edge": {"4px", ""}, "of a page that is scrolled": {"2300px", `<script>scrollTo(0, 2000)</script>`},
	} {
		t.Run(name, func(t *testing.T) {
			b.open(t, "/"+ident.Hex(6), say+`<body style="margin:0;height:5000px">`+strings.Replace(button, "%s", x.top, 1)+x.more+watch)
			d, err := b.page.Observe(t.Context(), observe.Query{})
			if err != nil {
				t.Fatal(err)
			}
			before := b.effects()
			p, err := b.page.Picture(t.Context(), d.Revision, find(t, d, "Pay"))
			if err != nil {
				t.Fatal(err)
			}
			if !p.Valid() || p.Width != 640 || p.Height != 360 || p.Box.Width < 118 || p.Box.Height < 48 {
				t.Fatalf("%d bytes, %d x %d, %+v", len(p.JPEG), p.Width, p.Height, p.Box)
			}
			shown, err := jpeg.Decode(bytes.NewReader(p.JPEG))
			if err != nil {
				t.Fatal(err)
			}
			red := func(x, y int) bool {
				r, g, _, _ := shown.At(x*shown.Bounds().Dx()/p.Width, y*shown.Bounds().Dy()/p.Height).RGBA()
				return r > 0xc000 && g < 0x4000
			}
			in, out := 0, 0
			for x := 0; x < p.Width; x += 4 {
				for y := 0; y < p.Height; y += 4 {
					inside := x > p.Box.X+4 && x < p.Box.X+p.Box.Width-4 && y > p.Box.Y+4 && y < p.Box.Y+p.Box.Height-4
					outside := x < p.Box.X-4 || x > p.Box.X+p.Box.Width+4 || y < p.Box.Y-4 || y > p.Box.Y+p.Box.Height+4
					if inside && !red(x, y) {
						in++
					}
					if outside && red(x, y) {
						out++
					}
				}
			}
			if in+out > 0 {
				t.Errorf("the box %+v misses the button: %d and %d points", p.Box, in, out)
			}
			// The revision is still good, and the page has noticed nothing.
			if _, err := b.act(t, d, action.Click, "Pay"); err != nil {
				t.Error(err)
			}
			if strings.Contains(strings.TrimPrefix(b.effects(), before), "noticed-resize") || strings.Contains(strings.TrimPrefix(b.effects(), before), "noticed-scroll") {
				t.Errorf("the page noticed: %s", strings.TrimPrefix(b.effects(), before))
			}
		})
	}
	t.Run("in a frame", func(t *testing.T) {
		b.Page("login.example/pay", `<body style="margin:0"><button style="margin:40px;width:100px;height:50px;border:0;background:rgb(250,0,0);color:rgb(250,0,0)">Pay</button>`)
		d := b.open(t, "/framed", `<body style="margin:0"><iframe style="position:absolute;left:300px;top:200px;width:400px;height:200px;border:0" src="https://login.example/pay"></iframe>`)
		p, err := b.page.Picture(t.Context(), d.Revision, find(t, d, "Pay"))
		if err != nil {
			t.Fatal(err)
		}
		shown, err := jpeg.Decode(bytes.NewReader(p.JPEG))
		if err != nil {
			t.Fatal(err)
		}
		r, g, _, _ := shown.At(p.Box.X+p.Box.Width/2, p.Box.Y+p.Box.Height/2).RGBA()
		if r < 0xc000 || g > 0x4000 || p.Box.Width < 98 {
			t.Errorf("%+v is not the button", p.Box)
		}
	})
	t.Run("of what is not there any more", func(t *testing.T) {
		d := b.changed(t, "changedpicture", say+`<button id=x>Pay</button>`, `x.textContent='Pay more'`)
		_, err := b.page.Picture(t.Context(), d.Revision, find(t, d, "Pay"))
		refused(t, err, fault.PageChanged)
		_, err = b.page.Picture(t.Context(), ident.Hex(16), find(t, d, "Pay"))
		refused(t, err, fault.PageChanged)
		d = b.open(t, "/below", `<div style="height:3000px"></div><button>Below</button>`)
		_, err = b.page.Picture(t.Context(), d.Revision, find(t, d, "Below"))
		refused(t, err, fault.ElementNotFound)
	})
}
