package pipe_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/browser/worker/pipe"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

const home = "https://wiki.example.org/"

// pair is a connected pair of sockets, as a worker inherits one.
func pair(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]*net.UnixConn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		conns[i] = c.(*net.UnixConn)
	}
	return conns[0], conns[1]
}

// rig is a client whose worker end runs in this process over a fake web.
type rig struct {
	*pipe.Client
	world *fake.World
	page  *fake.Page
	setup pipe.Setup
	ended chan error // of Serve
	far   *net.UnixConn
}

func start(t testing.TB) *rig {
	t.Helper()
	near, far := pair(t)
	r := &rig{Client: pipe.NewClient(near), world: &fake.World{}, ended: make(chan error, 1), far: far}
	r.world.Put(home, fake.Doc{Title: "Wiki", Text: "Hello", Controls: []fake.Control{
		{Role: "button", Name: "Save", SetsCookie: "saved"}, {Role: "textbox", Name: "Name", Field: "text"}}})
	setups := make(chan pipe.Setup, 1)
	go func() {
		r.ended <- pipe.Serve(context.Background(), far, func(ctx context.Context, s pipe.Setup) (browser.Page, error) {
			setups <- s
			return r.world.Launch(ctx, browser.Spec{Tenant: "t", Origins: s.Origins, Headed: s.Headed})
		})
	}()
	origins, err := site.ParseOrigins([]string{home})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Launch(t.Context(), pipe.Setup{Origins: origins, Headed: true, Proxy: "127.0.0.1:1", Home: "/h", PolicyDir: "/p", Chromium: "/c", Xvfb: "/x", TrustedCA: []byte("ca")}); err != nil {
		t.Fatal(err)
	}
	r.setup, r.page = <-setups, r.world.Live()[0]
	t.Cleanup(func() {
		r.Close()
		within(t, r.Lost(), "the client's end")
		select {
		case <-r.ended:
		case <-time.After(time.Minute):
			t.Error("Serve did not end with its connection")
		}
		if live := r.world.Live(); len(live) != 0 {
			t.Error("the browser was left open")
		}
	})
	return r
}

func within(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("still waiting for " + what)
	}
}

func url(t testing.TB, s string) site.URL {
	t.Helper()
	u, err := site.ParseURL(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (r *rig) open(t testing.TB) action.Action {
	t.Helper()
	d, err := r.Navigate(t.Context(), url(t, home))
	if err != nil {
		t.Fatal(err)
	}
	return action.Action{Kind: action.Click, ExpectedRevision: d.Revision, Ref: d.Elements[0].Ref}
}

// TRUST-04: every call crosses unchanged, in both directions.
func TestCallsCross(t *testing.T) {
	r := start(t)
	if r.setup.Origins.Strings()[0] != "https://wiki.example.org" || !r.setup.Headed || r.setup.Proxy != "127.0.0.1:1" || r.setup.Home != "/h" ||
		r.setup.PolicyDir != "/p" || r.setup.Chromium != "/c" || r.setup.Xvfb != "/x" || string(r.setup.TrustedCA) != "ca" {
		t.Errorf("the setup arrived as %+v", r.setup)
	}
	want := browser.Material{
		Cookies: []browser.Cookie{{Name: "a", Value: "\u2028\x00", Domain: ".example.org", Path: "/", Expires: -1, Secure: true, HTTPOnly: true,
			Partition: &browser.PartitionKey{TopLevelSite: "https://a.example.org", HasCrossSiteAncestor: true}}},
		Origins: []browser.Storage{{Origin: "https://wiki.example.org", Items: []browser.Item{{Name: "n", Value: strings.Repeat("v", 20<<20)}}}},
	}
	if err := r.Restore(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := r.Capture(t.Context())
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("the session changed on its way: %v", err)
	}
	a := r.open(t)
	if d, err := r.Act(t.Context(), a, nil); err != nil || d.Title != "Wiki" || d.Revision == a.ExpectedRevision {
		t.Errorf("act: %+v, %v", d, err)
	}
	if e := r.world.Effects(); len(e) != 1 || e[0].Name != "Save" {
		t.Errorf("effects: %v", e)
	}
	if d, err := r.Observe(t.Context(), observe.Query{}); err != nil || len(d.Elements) != 2 || d.Facts[d.Elements[1].Ref].FieldKind != "text" {
		t.Errorf("observe: %+v, %v", d, err)
	}
	if e, err := r.Evidence(t.Context()); err != nil || !e.OnAllowedOrigin || !e.StoragePresent {
		t.Errorf("evidence: %+v, %v", e, err)
	}
	in := browser.Input{Kind: "text", Text: "secret"}
	if err := r.Input(t.Context(), in); err != nil || !cmp.Equal(r.page.Inputs(), []browser.Input{in}) {
		t.Errorf("input: %v, %v", r.page.Inputs(), err)
	}
	frames, err := r.Frames(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f := <-frames; f.Width != 1280 || f.Height != 800 || !bytes.Equal(f.JPEG, []byte{0xff, 0xd8, 0xff, 0xd9}) {
		t.Errorf("picture: %+v", f)
	}
}

// REL-02: errors keep their code and sentence, and never carry their cause.
func TestErrorsCross(t *testing.T) {
	r := start(t)
	a := r.open(t)
	for _, c := range []struct {
		err   error
		code  fault.Code
		retry bool
	}{
		{fault.Wrap(fault.PageChanged, "The page changed.", errors.New("cookie=1")).Retry(), fault.PageChanged, true},
		{fault.Wrap(fault.ElementNotFound, "It has gone.", errors.New("cookie=1")), fault.ElementNotFound, false},
		{fault.New(fault.OutcomeUnknown, "Unknown."), fault.OutcomeUnknown, false},
		{errors.New("cookie=1"), fault.OutcomeUnknown, false}, // nothing says that nothing was sent
		{fault.New(fault.ApprovalPending, "Wait."), fault.OutcomeUnknown, false},
	} {
		r.world.OnAct(func(context.Context, *fake.Page, action.Action) error { return c.err })
		_, err := r.Act(t.Context(), a, nil)
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != c.code || e.Retryable != c.retry || strings.Contains(err.Error(), "cookie") {
			t.Errorf("%v arrived as %v", c.err, err)
		}
	}
	if _, err := r.Navigate(t.Context(), url(t, "https://other.example.org/")); !fault.Is(err, fault.URLDisallowed) {
		t.Errorf("another origin: %v", err)
	}
	r.world.OnLoad(func(context.Context, string) error { return errors.New("cookie=1") })
	if _, err := r.Navigate(t.Context(), url(t, home)); !fault.Is(err, fault.Internal) || strings.Contains(err.Error(), "cookie") {
		t.Errorf("a nameless failure: %v", err)
	}
}

// REL-01: a call that is given up is given up at the other end, and the pipe
// goes on; nothing is sent for a call that was given up before.
func TestCancellation(t *testing.T) {
	r := start(t)
	a := r.open(t)
	entered := make(chan struct{})
	r.world.OnAct(func(ctx context.Context, _ *fake.Page, _ action.Action) error {
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	if _, err := r.Act(ctx, a, nil); !fault.Is(err, fault.OutcomeUnknown) {
		t.Errorf("a cancelled act: %v", err)
	}
	before := len(r.world.Requests())
	if _, err := r.Navigate(ctx, url(t, home)); !errors.Is(err, context.Canceled) || !fault.Is(err, fault.ProviderUnavailable) {
		t.Errorf("a cancelled navigation: %v", err)
	}
	if len(r.world.Requests()) != before {
		t.Error("a call that was already cancelled was sent")
	}
	r.world.OnLoad(func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() })
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := r.Navigate(short, url(t, home)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a navigation past its deadline: %v", err)
	}
	if _, err := r.Observe(t.Context(), observe.Query{}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	// A stream that is given up ends, and what was under way does no harm.
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		frames, err := r.Frames(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		for range frames {
		}
	}
	if _, err := r.Observe(t.Context(), observe.Query{}); err != nil {
		t.Errorf("after the streams: %v", err)
	}
}

// A worker that no longer obeys is lost, in bounded time.
func TestFrozenWorker(t *testing.T) {
	r := start(t)
	a := r.open(t)
	release := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	r.world.OnAct(func(context.Context, *fake.Page, action.Action) error { cancel(); <-release; return nil })
	_, err := r.Act(ctx, a, nil)
	close(release)
	if !fault.Is(err, fault.OutcomeUnknown) {
		t.Errorf("act: %v", err)
	}
	within(t, r.Lost(), "the loss of a frozen worker")
}

// REL-01: whatever is lost during an act may have happened; anything else has not.
func TestLoss(t *testing.T) {
	for name, lose := range map[string]func(*rig){
		"the browser crashes":  func(r *rig) { r.page.Crash() },
		"the connection ends":  func(r *rig) { r.far.Close() },
		"the client is closed": func(r *rig) { r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			a := r.open(t)
			frames, err := r.Frames(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.world.OnAct(func(context.Context, *fake.Page, action.Action) error { lose(r); return nil })
			if _, err := r.Act(t.Context(), a, nil); !fault.Is(err, fault.OutcomeUnknown) {
				t.Errorf("during an act: %v", err)
			}
			within(t, r.Lost(), "the loss")
			for range frames { // ends
			}
			var again atomic.Bool // the first act may still be at work over there
			r.world.OnAct(func(context.Context, *fake.Page, action.Action) error { again.Store(true); return nil })
			_, actErr := r.Act(t.Context(), a, nil)
			_, observeErr := r.Observe(t.Context(), observe.Query{})
			_, framesErr := r.Frames(t.Context())
			for _, err := range []error{actErr, observeErr, framesErr, r.Input(t.Context(), browser.Input{Kind: "click"})} {
				if !fault.Is(err, fault.ProviderUnavailable) {
					t.Errorf("afterwards: %v", err)
				}
			}
			r.Close()
			end := <-r.ended // all that was sent has been served
			r.ended <- end
			if again.Load() {
				t.Error("an act after the loss reached the page")
			}
		})
	}
	t.Run("during a navigation", func(t *testing.T) {
		r := start(t)
		r.world.OnLoad(func(context.Context, string) error { r.far.Close(); return nil })
		if _, err := r.Navigate(t.Context(), url(t, home)); !fault.Is(err, fault.ProviderUnavailable) {
			t.Errorf("during a navigation: %v", err)
		}
	})
}

// STORE-06: a session over the bound is refused at once and nothing is lost.
func TestMaterialBound(t *testing.T) {
	r := start(t)
	big := browser.Material{Origins: []browser.Storage{{Origin: "https://wiki.example.org", Items: []browser.Item{{Name: "n", Value: strings.Repeat("v", browser.MaxMaterial)}}}}}
	if err := r.Restore(t.Context(), big); !fault.Is(err, fault.ProfileUnavailable) {
		t.Errorf("restore: %v", err)
	}
	r.page.Restore(t.Context(), big)
	if _, err := r.Capture(t.Context()); !fault.Is(err, fault.OutputInvalid) {
		t.Errorf("capture: %v", err)
	}
	if _, err := r.Evidence(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func BenchmarkObserve(b *testing.B) {
	r := start(b)
	r.world.Put(home, fake.Doc{Title: "Wiki", Text: strings.Repeat("words ", 2000), Controls: []fake.Control{{Role: "button", Name: "Save"}}})
	r.open(b)
	for b.Loop() {
		if _, err := r.Observe(b.Context(), observe.Query{}); err != nil {
			b.Fatal(err)
		}
	}
}
