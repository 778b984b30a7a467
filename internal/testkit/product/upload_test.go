package product_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

// photos is a website that takes photos, and remembers what it got.
type photos struct {
	mu  sync.Mutex
	got []photo
}

type photo struct {
	name string
	data []byte
}

const photosPage = `<!doctype html><meta charset=utf-8><title>Photos</title><h1>Your photos</h1>
<input type=file aria-label="Add a photo" accept="image/*">
<button onclick="picker.click()">Choose a cover</button><input id=picker type=file hidden>
<script>for (const i of document.querySelectorAll('input')) i.onchange = () => fetch('/photo?' + encodeURIComponent(i.files[0].name), { method: 'POST', body: i.files[0] })</script>`

func (p *photos) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
		if err != nil {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.got = append(p.got, photo{r.URL.RawQuery, body})
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	io.WriteString(w, photosPage)
}

func (p *photos) list() []photo {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]photo(nil), p.got...)
}

// noise is a PNG of some megabytes that no packing makes smaller.
func noise(t *testing.T, side int) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, side, side))
	seed := uint32(7)
	for i := range m.Pix {
		seed = seed*1664525 + 1013904223
		m.Pix[i] = byte(seed >> 24)
	}
	for y := range side {
		m.Set(0, y, color.NRGBA{1, 2, 3, 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// One image of the owner's goes to a website through the real programs: with
// an approval of its own each time, whole, under our name, and past nobody
// else. The owner sees where it goes; the agent sees identifiers (UPL-02 to
// UPL-09, VIEW-02).
func TestUpload(t *testing.T) {
	const host = "photos.example"
	album := &photos{}
	site := product.PracticeWith(t, map[string]http.Handler{host: album})
	data := product.Folder(t)
	r := product.Up(t, data, "--dev", product.DevFile(t, site, ""), "--approval-wait", "0s")
	file := filepath.Join(t.TempDir(), "holiday at the sea.png")
	bytes1 := noise(t, 1000) // 4 MB: past every other bound of the wire
	if len(bytes1) < 3<<20 || len(bytes1) > 5<<20 {
		t.Fatalf("the image has %d bytes", len(bytes1))
	}
	if err := os.WriteFile(file, bytes1, 0o600); err != nil {
		t.Fatal(err)
	}
	url := practice.URL(host, "")
	agent := product.NewAgent(t, data, "--ephemeral", "--origin", url, "--image", file)
	_, id, ok := strings.Cut(agent.Session.InitializeResult().Instructions, "newest first): ")
	if id, _, _ = strings.Cut(id, "."); !ok || len(id) != 36 {
		t.Fatalf("the agent is told %q", id)
	}
	var sessions struct {
		Sessions []struct{ ID string } `json:"sessions"`
	}
	r.Must(&sessions, "sessions", "list", "--json")
	session := sessions.Sessions[0].ID

	page := agent.Open(url + "/")
	upload := func(name, image string) product.Answer {
		t.Helper()
		for _, e := range page.Elements {
			if e.Name == name {
				return agent.Call("browser.upload", map[string]string{"image_id": image, "expected_revision": page.Revision, "ref": e.Ref})
			}
		}
		t.Fatalf("no %q in %+v", name, page.Elements)
		return product.Answer{}
	}
	for i, name := range []string{"Add a photo", "Choose a cover"} {
		asked := upload(name, id)
		if asked.Code != "approval_pending" || asked.Approval == nil {
			t.Fatalf("%+v", asked)
		}
		if n := len(album.list()); n != i {
			t.Fatalf("%d photos before the owner's answer", n)
		}
		shown := filepath.Join(t.TempDir(), "shown.jpg")
		told := product.Run(t, data, "approvals", "show", asked.Approval.ID, "--picture", shown)
		for _, want := range []string{"Give an image to", strings.ToLower(host), id, "image/png, 1000 x 1000", fmt.Sprint(len(bytes1)), `"` + name + `"`, "it may transfer a file"} {
			if !strings.Contains(told.Out, want) {
				t.Errorf("the owner is not told %q:\n%s%s", want, told.Out, told.Err)
			}
		}
		picture, err := os.ReadFile(shown)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := jpeg.DecodeConfig(bytes.NewReader(picture)); err != nil || c.Width < 300 || c.Height < 200 {
			t.Errorf("the picture is %+v (%v)", c, err)
		}
		r.Must(nil, "approvals", "approve", asked.Approval.ID)
		if page = upload(name, id); page.Code != "" {
			t.Fatalf("after the approval: %s %s", page.Code, page.Message)
		}
		deadline := time.Now().Add(20 * time.Second)
		for len(album.list()) == i && time.Now().Before(deadline) {
			<-time.After(20 * time.Millisecond)
		}
		got := album.list()
		if len(got) != i+1 || got[i].name != id+".png" || !bytes.Equal(got[i].data, bytes1) {
			t.Fatalf("the site got %d photos; the last is %q with %d bytes", len(got), got[len(got)-1].name, len(got[len(got)-1].data))
		}
		if strings.Contains(agent.Wire.String(), base64.StdEncoding.EncodeToString(picture)[200:260]) {
			t.Error("the picture is in the agent's traffic")
		}
	}

	// UPL-06: another session's image is none, and neither is one that was removed.
	other := product.NewAgent(t, data, "--ephemeral", "--origin", url)
	on := other.Open(url + "/")
	foreign := other.Call("browser.upload", map[string]string{"image_id": id, "expected_revision": on.Revision, "ref": on.Elements[0].Ref})
	r.Must(nil, "image", "remove", session, id)
	removed := upload("Add a photo", id)
	if foreign.Code != "tool.arguments_invalid" || removed.Code != foreign.Code || removed.Message != foreign.Message {
		t.Errorf("%+v and %+v", foreign, removed)
	}

	// UPL-09: the bytes are where they belong, and with the session they go.
	sample := string(bytes1[2000:2040])
	for name, text := range map[string]string{"agent's traffic": agent.Wire.String(), "agent's log": agent.Log.String(), "log": r.Log.String()} {
		if strings.Contains(text, sample) || strings.Contains(text, base64.StdEncoding.EncodeToString(bytes1[1998:2040])) || strings.Contains(text, "holiday") && name != "agent's log" {
			t.Errorf("the %s holds the image or its name", name)
		}
	}
	leak.NoSecret(t, []string{sample}, data)
	if n := len(album.list()); n != 2 {
		t.Errorf("%d photos in the end", n)
	}
	agent.Close()
	r.Stop()
}
