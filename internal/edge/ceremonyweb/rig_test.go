package ceremonyweb_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/browserd"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/browser/servicetest"
	"github.com/chaperone-agents/chaperone/internal/edge/ceremonyweb"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/internal/vault"
	"github.com/chaperone-agents/chaperone/internal/vault/keyring"
)

var ada = caller.Scope{Tenant: "local", Principal: "ada"}

// buffer is a log that tests read.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// film launches browsers whose picture is a drawing, and whose input can fail.
type film struct {
	*fake.World
	jpeg  []byte
	fails atomic.Bool // the next event
}

type filmed struct {
	browser.Page
	film *film
}

func (f *film) Launch(ctx context.Context, s browser.Spec) (browser.Page, error) {
	p, err := f.World.Launch(ctx, s)
	if err != nil {
		return nil, err
	}
	return &filmed{Page: p, film: f}, nil
}

func (p *filmed) Frames(ctx context.Context) (<-chan browser.Frame, error) {
	frames := make(chan browser.Frame, 1)
	frames <- browser.Frame{JPEG: p.film.jpeg, Width: 1280, Height: 800}
	context.AfterFunc(ctx, func() { close(frames) })
	return frames, nil
}

func (p *filmed) Input(ctx context.Context, in browser.Input) error {
	if p.film.fails.CompareAndSwap(true, false) {
		return errors.New("the renderer did not answer: planted diagnostic")
	}
	return p.Page.Input(ctx, in)
}

// drawing is a picture that looks like a sign-in form.
func drawing(t *testing.T) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 1280, 800))
	fill := func(c color.Color, x0, y0, x1, y1 int) {
		draw.Draw(img, image.Rect(x0, y0, x1, y1), image.NewUniform(c), image.Point{}, draw.Src)
	}
	fill(color.RGBA{238, 242, 246, 255}, 0, 0, 1280, 800)
	fill(color.RGBA{36, 62, 98, 255}, 0, 0, 1280, 64)
	fill(color.White, 420, 180, 860, 600)
	fill(color.RGBA{200, 208, 216, 255}, 460, 300, 820, 350)
	fill(color.White, 462, 302, 818, 348)
	fill(color.RGBA{200, 208, 216, 255}, 460, 390, 820, 440)
	fill(color.White, 462, 392, 818, 438)
	fill(color.RGBA{36, 98, 160, 255}, 460, 490, 820, 540)
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// rig is the sign-in surface on a loopback port, over the real service.
type rig struct {
	t       *testing.T
	service *browserd.Service
	film    *film
	origin  string
	log     *buffer
	ahead   atomic.Int64
	profile string
	ref     string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	root := t.TempDir()
	keys, sealed := filepath.Join(root, "keys"), filepath.Join(root, "sealed")
	if err := keyring.Generate(keys); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(sealed, 0o700); err != nil {
		t.Fatal(err)
	}
	v, err := vault.Open(vault.Config{Dir: sealed, KeyDir: keys})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, film: &film{World: &fake.World{}, jpeg: drawing(t)}, origin: "http://localhost:" + port, log: &buffer{}, profile: ident.New()}
	servicetest.Website(r.film.World)
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	now := func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }
	r.service, err = browserd.New(browserd.Config{Vault: v, Launcher: r.film, CeremonyBase: r.origin, Now: now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	h, err := ceremonyweb.New(ceremonyweb.Config{Service: r.service, Origin: r.origin, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	server := httpx.Server(h)
	served := make(chan struct{})
	go func() { defer close(served); server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r.service.Shutdown(ctx)
		server.Close()
		<-served
		v.Close()
	})
	origins, err := site.ParseOrigins([]string{"https://desk.practice.example"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.service.Provision(t.Context(), ada, r.profile, origins)
	if err != nil {
		t.Fatal(err)
	}
	r.ref = p.ProviderRef
	return r
}

// begin starts a sign-in; the launch address is in two halves.
func (r *rig) begin() (c browser.Ceremony, address, capability string) {
	r.t.Helper()
	login, err := site.ParseURL(servicetest.SignIn)
	if err != nil {
		r.t.Fatal(err)
	}
	c, err = r.service.BeginCeremony(r.t.Context(), ada, r.profile, r.ref, login)
	if err != nil {
		r.t.Fatal(err)
	}
	address, capability, _ = strings.Cut(c.LaunchURL.Reveal(), "#")
	return c, address, capability
}

// inputs is what reached the page.
func (r *rig) inputs() []browser.Input {
	r.t.Helper()
	live := r.film.Live()
	if len(live) != 1 {
		r.t.Fatalf("%d browsers are open, want 1", len(live))
	}
	return live[0].Inputs()
}

// until polls a condition.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			r.t.Fatalf("timed out: %s", what)
		}
	}
}

func (r *rig) get(path string, header map[string]string) *http.Response {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.origin+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for k, v := range header {
		if k == "Host" {
			q.Host = v
			continue
		}
		q.Header.Set(k, v)
	}
	a, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { a.Body.Close() })
	return a
}
