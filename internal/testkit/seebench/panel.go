package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

// The controls that every page for acts has, by their names.
const (
	buttonName = "Count on"
	fieldName  = "Word of the day"
	selectName = "Colour"
)

// panel tells the site of every effect, once, and shows the last one.
const panel = `<section><p role=status id=last>Last: nothing</p><button type=button id=count>` + buttonName + `</button>
<label>` + fieldName + ` <input id=word></label>
<label>` + selectName + ` <select id=colour><option>Grey<option>Red<option>Blue</select></label></section><script>
{
  const by = (id) => document.getElementById(id);
  const tell = (did) => {
    by("last").textContent = "Last: " + did + ".";
    fetch("/did" + location.search, {method: "POST", body: did});
  };
  let n = 0;
  by("count").addEventListener("click", () => tell("click " + ++n));
  by("word").addEventListener("input", () => tell("type " + by("word").value));
  by("colour").addEventListener("change", () => tell("select " + by("colour").value));
}
</script>`

// actPages are pages of the same shapes with the panel on top.
func actPages() []page {
	out := []page{
		{"act-form", form(), "Send the order"},
		{"act-dense", cards(1000, 11, 2), "Act 1"},
		{"act-huge", cards(2000, 26, 3), "Act 1"},
	}
	for i := range out {
		out[i].body = panel + out[i].body
	}
	return out
}

// effects is what the site was told, by the page that told it.
type effects struct {
	mu      sync.Mutex
	told    map[string][]string
	changed chan struct{} // closed with each
}

func newEffects() *effects {
	return &effects{told: map[string][]string{}, changed: make(chan struct{})}
}

func (e *effects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	did, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<10))
	if err != nil {
		http.Error(w, "too long", http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	by := r.URL.RawQuery
	e.told[by] = append(e.told[by], string(did))
	close(e.changed)
	e.changed = make(chan struct{})
	w.WriteHeader(http.StatusNoContent)
}

// expect waits until the page has told as many effects as these, and says
// whether they are exactly these, in this order.
func (e *effects) expect(ctx context.Context, by string, want []string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		e.mu.Lock()
		told, changed := slices.Clone(e.told[by]), e.changed
		e.mu.Unlock()
		if len(told) >= len(want) {
			if !slices.Equal(told, want) {
				return fmt.Errorf("the site was told %q by %s instead of %q", told, by, want)
			}
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the site was told only %q by %s instead of %q within %v", told, by, want, patience)
		}
	}
}
