package browserd_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/browserd"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/browser/servicetest"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
)

var ada = caller.Scope{Tenant: "local", Principal: "ada"}

// rig is a service over a vault in memory and a scripted web, with one profile
// in which something is sealed.
type rig struct {
	*testing.T
	*browserd.Service
	vault   *memory
	world   *fake.World
	log     *log
	profile string
	ref     string
	origins site.Origins
}

const earlier = `{"cookies":[{"name":"session","value":"earlier","domain":"desk.practice.example","path":"/","expires":-1,"httpOnly":true,"secure":true}],"origins":null}`

// newRig may be called in a bubble of fake time.
func newRig(t *testing.T, change ...func(*browserd.Config)) *rig {
	t.Helper()
	r := &rig{T: t, vault: newMemory(), world: &fake.World{}, log: &log{}, profile: ident.New()}
	servicetest.Website(r.world)
	var err error
	if r.origins, err = site.ParseOrigins([]string{"https://desk.practice.example"}); err != nil {
		t.Fatal(err)
	}
	c := browserd.Config{Vault: r.vault, Launcher: r.world, Log: slog.New(slog.NewTextHandler(r.log, nil))}
	for _, f := range change {
		f(&c)
	}
	r.Service = start(t, c)
	p, err := r.Provision(t.Context(), ada, r.profile, r.origins)
	if err != nil {
		t.Fatal(err)
	}
	r.ref = p.ProviderRef
	r.vault.set(func(m *memory) { m.sealed[r.profile] = earlier })
	return r
}

func (r *rig) key(run string) lease.Key {
	return lease.Key{Scope: ada, ProfileID: r.profile, ProviderRef: r.ref, RunID: run, Attempt: 1, Origins: r.origins}
}

func (r *rig) acquire(run string) browser.Lease {
	r.Helper()
	l, err := r.Acquire(r.Context(), r.key(run), true, time.Now().Add(10*time.Minute))
	if err != nil {
		r.Fatal(err)
	}
	return l
}

// page is the only browser there is.
func (r *rig) page() *fake.Page {
	r.Helper()
	live := r.world.Live()
	if len(live) != 1 {
		r.Fatalf("%d browsers are open, want 1", len(live))
	}
	return live[0]
}

// untouched demands that the seal is what it was.
func (r *rig) untouched() {
	r.Helper()
	if got, n := r.vault.holds(r.profile); got != earlier || n != 0 {
		r.Errorf("the seal was replaced %d times", n)
	}
}

func (r *rig) request(tool action.Tool, arguments any) action.Request {
	r.Helper()
	b, err := json.Marshal(arguments)
	if err != nil {
		r.Fatal(err)
	}
	q, err := action.Prepare(tool, b)
	if err != nil {
		r.Fatal(err)
	}
	return q
}

func (r *rig) navigate(ref, url string) error {
	r.Helper()
	_, err := r.Dispatch(r.Context(), ref, 0, r.request(action.Navigate, map[string]string{"url": url}), nil)
	return err
}

// begin starts a sign-in and splits the launch address.
func (r *rig) begin() (browser.Ceremony, secret.Text) {
	r.Helper()
	c, err := r.BeginCeremony(r.Context(), ada, r.profile, r.ref, r.request(action.Navigate, map[string]string{"url": servicetest.SignIn}).URL)
	if err != nil {
		r.Fatal(err)
	}
	_, capability, _ := strings.Cut(c.LaunchURL.Reveal(), "#")
	return c, secret.NewText(capability)
}

// connect begins a sign-in and claims it.
func (r *rig) connect() (browser.Ceremony, *browserd.Viewer) {
	r.Helper()
	c, capability := r.begin()
	v, err := r.Claim(c.ID, capability)
	if err != nil {
		r.Fatal(err)
	}
	return c, v
}

func (r *rig) status(c browser.Ceremony) string {
	r.Helper()
	s, err := r.CeremonyStatus(context.Background(), ada, c.ID)
	if err != nil {
		r.Fatal(err)
	}
	return string(s)
}

func (r *rig) input(v *browserd.Viewer, in browser.Input) {
	r.Helper()
	if err := v.Input(r.Context(), in); err != nil {
		r.Fatal(err)
	}
}

var (
	password = browser.Input{Kind: "text", Text: "planted-password-XYZZY"}
	enter    = browser.Input{Kind: "key", Key: "Enter"}
	click    = browser.Input{Kind: "click", X: 10, Y: 10}
)
