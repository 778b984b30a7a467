package product_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

const (
	shopHost = "workshop.example"
	shopURL  = "https://" + shopHost
)

// workshop is a website on which tests decide when things happen. It counts
// the orders that reach it, which no test has to ask the product for.
type workshop struct {
	mu     sync.Mutex
	orders int

	arrived chan struct{} // an order that is held back is there
	release chan struct{} // closed to answer it
	change  chan struct{} // closed to let the page redraw its button
	changed chan struct{} // the page has done it
}

// newWorkshop is a practice site with the workshop beside it, and its
// development file.
func newWorkshop(t *testing.T) (w *workshop, site *practice.Site, dev string) {
	t.Helper()
	w = &workshop{}
	w.reset()
	site = product.PracticeWith(t, map[string]http.Handler{shopHost: w.handler()})
	return w, site, product.DevFile(t, site, "")
}

// reset makes it as new; nothing may be held or waiting.
func (w *workshop) reset() {
	w.orders, w.arrived, w.changed = 0, make(chan struct{}, 1), make(chan struct{}, 1)
	w.release, w.change = make(chan struct{}), make(chan struct{})
}

// home is a data folder with a profile that is signed in to the desk and may
// use the workshop. It is made once; each test works on a copy.
type home struct {
	once sync.Once
	dir  string
	shop workshop
	site *practice.Site
	dev  string
	id   string
}

var shared home

func (h *home) make(t *testing.T) {
	var err error
	if h.dir, err = os.MkdirTemp("", "ch-"); err != nil {
		t.Fatal(err)
	}
	h.shop.reset()
	// It serves every test that asks, and ends with the process.
	h.site, err = practice.Start(practice.Config{Hosts: map[string]http.Handler{shopHost: h.shop.handler()}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if h.dev, err = h.site.DevFile(h.dir); err != nil {
		t.Fatal(err)
	}
	r := product.Up(t, filepath.Join(h.dir, "data"), "--dev", h.dev, "--approval-wait", "0s")
	id := profile(t, r, shopURL)
	r.SignIn(h.site, id)
	r.Stop()
	h.id = id
}

// copy is a copy of the data folder, for one test.
func (h *home) copy(t *testing.T) (data string) {
	t.Helper()
	h.once.Do(func() { h.make(t) })
	if h.id == "" {
		t.Fatal("there is no signed-in profile; the first test that asked for it says why")
	}
	h.shop.reset()
	data = product.Folder(t)
	if out, err := exec.Command("cp", "-a", filepath.Join(h.dir, "data"), data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return data
}

// signedIn is a running Chaperone on a copy of the shared data folder.
func signedIn(t *testing.T) (shop *workshop, r *product.Running, id string) {
	t.Helper()
	data := shared.copy(t)
	return &shared.shop, product.Up(t, data, "--dev", shared.dev, "--approval-wait", "0s"), shared.id
}

const shopPage = `<!doctype html><title>Workshop</title><h1>Workshop</h1>
<form method="post" action="%s"><button>Send order</button></form><script>%s</script>`

// redraw takes the button away and puts another one in its place.
const redraw = `new EventSource("/change").onmessage = () => {
  const old = document.querySelector("button"), fresh = document.createElement("button");
  fresh.textContent = "Send order";
  old.replaceWith(fresh);
  fetch("/changed", {method: "POST"});
};`

func (w *workshop) handler() http.Handler {
	m := http.NewServeMux()
	page := func(action, script string) http.HandlerFunc {
		return func(a http.ResponseWriter, _ *http.Request) {
			a.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(a, shopPage, action, script)
		}
	}
	m.HandleFunc("GET /", page("/order", ""))
	m.HandleFunc("GET /held", page("/order-held", ""))
	m.HandleFunc("GET /changing", page("/order", redraw))
	m.HandleFunc("POST /order", func(a http.ResponseWriter, r *http.Request) {
		w.order()
		http.Redirect(a, r, "/", http.StatusSeeOther)
	})
	m.HandleFunc("POST /order-held", func(a http.ResponseWriter, r *http.Request) {
		w.order()
		w.arrived <- struct{}{}
		select {
		case <-w.release:
		case <-r.Context().Done():
		}
	})
	m.HandleFunc("GET /change", func(a http.ResponseWriter, r *http.Request) {
		a.Header().Set("Content-Type", "text/event-stream")
		http.NewResponseController(a).Flush()
		select {
		case <-w.change:
			fmt.Fprint(a, "data: now\n\n")
		case <-r.Context().Done():
		}
	})
	m.HandleFunc("POST /changed", func(a http.ResponseWriter, _ *http.Request) {
		w.changed <- struct{}{}
		a.WriteHeader(http.StatusNoContent)
	})
	return m
}

func (w *workshop) order() { w.mu.Lock(); defer w.mu.Unlock(); w.orders++ }

// has fails the test unless so many orders have arrived.
func (w *workshop) has(t *testing.T, want int, when string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.orders != want {
		t.Errorf("%d orders %s, want %d", w.orders, when, want)
	}
}

func within(t *testing.T, limit time.Duration, what string, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(limit):
		t.Fatalf("%s did not happen within %v", what, limit)
	}
}
