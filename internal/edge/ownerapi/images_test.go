package ownerapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/client"
	"github.com/chaperone-agents/chaperone/internal/app/owner"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
)

func (h *house) session(by caller.Caller) string {
	h.t.Helper()
	s, _, err := h.owner.CreateSession(h.t.Context(), by, owner.NewSession{Origins: []string{wiki}})
	if err != nil {
		h.t.Fatal(err)
	}
	return s.ID
}

func dot(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 5, 3))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func octets(r *http.Request) { r.Header.Set("Content-Type", "application/octet-stream") }

// UPL-02, UPL-06: the owner attaches, lists, sees and removes the images of a
// session; what comes back is no page that a browser would run.
func TestImages(t *testing.T) {
	h := newHouse(t)
	session, data := h.session(ana), dot(t)
	made, err := h.api.AttachImageWithBodyWithResponse(t.Context(), session, "application/octet-stream", bytes.NewReader(data))
	if err != nil || made.JSON201 == nil {
		t.Fatalf("%+v, %v", made, err)
	}
	i := *made.JSON201
	if i.Type != client.Imagepng || i.Width != 5 || i.Height != 3 || i.Size != int64(len(data)) || i.SessionId != session || i.Sha256 != artifact.Sum(data) {
		t.Errorf("%+v", i)
	}
	list, err := h.api.ListImagesWithResponse(t.Context(), session)
	if err != nil || list.JSON200 == nil || len(list.JSON200.Images) != 1 || list.JSON200.Images[0].Id != i.Id {
		t.Errorf("%+v, %v", list, err)
	}
	got := h.raw(http.MethodGet, "/v1/agent-sessions/"+session+"/images/"+i.Id, "", h.asAna)
	if got.status != http.StatusOK || got.body != string(data) {
		t.Errorf("the image comes back as %d, %d bytes", got.status, len(got.body))
	}
	for name, want := range map[string]string{
		"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Disposition": "attachment; filename=" + i.Id + ".png",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.header.Get(name), want)
		}
	}
	gone, err := h.api.RemoveImageWithResponse(t.Context(), session, i.Id)
	if err != nil || gone.StatusCode() != http.StatusNoContent {
		t.Errorf("%+v, %v", gone, err)
	}
	if again := h.raw(http.MethodGet, "/v1/agent-sessions/"+session+"/images/"+i.Id, "", h.asAna); again.status != http.StatusNotFound {
		t.Errorf("after its removal: %d", again.status)
	}
}

func TestImagesRefused(t *testing.T) {
	h := newHouse(t)
	session, theirs := h.session(ana), h.session(ben)
	path := "/v1/agent-sessions/" + session + "/images"
	big := string(dot(t)) + strings.Repeat("x", artifact.MaxSize)
	chunked := func(r *http.Request) { r.ContentLength = -1; r.Header.Set("Content-Type", "application/octet-stream") }
	for name, x := range map[string]struct {
		path, body string
		edit       func(*http.Request)
		status     int
	}{
		"as JSON":           {path, string(dot(t)), nil, http.StatusUnsupportedMediaType},
		"as an image":       {path, string(dot(t)), func(r *http.Request) { r.Header.Set("Content-Type", "image/png") }, http.StatusUnsupportedMediaType},
		"no image":          {path, "<svg onload=alert(1)>", octets, http.StatusUnsupportedMediaType},
		"too large":         {path, big, octets, http.StatusRequestEntityTooLarge},
		"too large, hidden": {path, big, chunked, http.StatusRequestEntityTooLarge},
		"another's session": {"/v1/agent-sessions/" + theirs + "/images", string(dot(t)), octets, http.StatusNotFound},
		"no session":        {"/v1/agent-sessions/" + ident.New() + "/images", string(dot(t)), octets, http.StatusNotFound},
		"no identifier":     {"/v1/agent-sessions/..%2f..%2fetc/images", string(dot(t)), octets, http.StatusNotFound},
		"nobody":            {path, string(dot(t)), func(r *http.Request) { octets(r); r.Header.Set("Authorization", "Bearer nobody") }, http.StatusUnauthorized},
	} {
		a := h.raw(http.MethodPost, x.path, x.body, func(r *http.Request) {
			h.asAna(r)
			if x.edit != nil {
				x.edit(r)
			}
		})
		if a.status != x.status {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.body, x.status)
		}
	}
	if entries, err := os.ReadDir(h.files); err == nil && len(entries) != 0 {
		t.Errorf("%d folders were made", len(entries))
	}
	// LHTTP-03: no other route takes more than it did.
	if a := h.raw(http.MethodPost, "/v1/agent-sessions", `{"name":"`+strings.Repeat("x", 70<<10)+`"}`, h.asAna); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large JSON body: %d", a.status)
	}
}

// VIEW-02: the picture of a question is its owner's.
func TestPicture(t *testing.T) {
	h := newHouse(t)
	id, jpeg := ident.New(), []byte{0xff, 0xd8, 0xff, 0xe0, 1, 2, 3}
	h.shown[id] = browser.Picture{JPEG: jpeg, Width: 640, Height: 360, Box: browser.Box{X: 1, Y: 2, Width: 30, Height: 40}}
	a := h.raw(http.MethodGet, "/v1/approvals/"+id+"/picture", "", h.asAna)
	var got client.Picture
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK || !bytes.Equal(got.Jpeg, jpeg) || got.Box != (client.Box{X: 1, Y: 2, Width: 30, Height: 40}) {
		t.Errorf("%d %s (%v)", a.status, a.body, err)
	}
	if !strings.Contains(a.body, base64.StdEncoding.EncodeToString(jpeg)) || a.header.Get("Content-Security-Policy") == "" || a.header.Get("Cache-Control") != "no-store" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", a.header)
	}
	theirs := h.pair(ben)
	for name, edit := range map[string]func(*http.Request){"another owner": func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+theirs.Reveal()) }} {
		if a := h.raw(http.MethodGet, "/v1/approvals/"+id+"/picture", "", edit); a.status != http.StatusNotFound {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	_, agent, err := h.owner.CreateSession(t.Context(), ana, owner.NewSession{Origins: []string{wiki}})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/approvals/" + id + "/picture", "/v1/agent-sessions/" + ident.New() + "/images"} {
		if a := h.raw(http.MethodGet, path, "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+agent.Reveal()) }); a.status != http.StatusForbidden {
			t.Errorf("an agent at %s: %d", path, a.status)
		}
	}
}
