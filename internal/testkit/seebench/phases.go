package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/testkit/demo/person"
)

// personUID is who the browser of the phases runs as when this is root.
const personUID = 61792

// phases say where the time of our own snapshot goes. The kit runs as it does
// in the product, but in the page's own world, where a call costs the same, and
// on a page as new: loaded in this round and observed once, as navigate does.
// On one that was observed often the engine has compiled it better, and the
// difference would be counted as the programs'.
type phases struct {
	empty spread // a call that does nothing
	call  spread // an observation, decoded
	inner [4]spread
}

// inside observes pages directly, without any of the programs.
type inside struct {
	browser *person.Person
	tab     *person.Tab
	seen    map[string]*phases
}

func startInside(ctx context.Context, o options, devFile string) (*inside, error) {
	dev, err := devmode.Load(devFile)
	if err != nil {
		return nil, err
	}
	c := person.Config{Chromium: o.chromium, Width: 1280, Height: 800, Dev: dev}
	if os.Geteuid() == 0 {
		c.UID = personUID
	}
	in := &inside{seen: map[string]*phases{}}
	if in.browser, err = person.Launch(ctx, c); err != nil {
		return nil, err
	}
	if in.tab, err = in.browser.NewTab(ctx); err != nil {
		return nil, errors.Join(err, in.browser.Close())
	}
	return in, nil
}

func (in *inside) open(ctx context.Context, p page) error {
	if in.seen[p.name] == nil {
		in.seen[p.name] = &phases{}
	}
	if err := in.tab.Open(ctx, p.url()); err != nil {
		return err
	}
	return in.tab.Read(ctx, "void (globalThis.kit = "+pagejs.Source()+")", nil)
}

// look is one round on the page that is open.
func (in *inside) look(ctx context.Context, p page, round int) error {
	if err := in.open(ctx, p); err != nil {
		return err
	}
	f := in.seen[p.name]
	argument, err := json.Marshal(pagejs.ObserveArgs{Revision: fmt.Sprint("round", round), Regions: true})
	if err != nil {
		return err
	}
	if err := in.tab.Read(ctx, fmt.Sprintf("Promise.resolve(kit.observe(%s)).then(() => 0)", argument), nil); err != nil {
		return err
	}
	began := time.Now()
	if err := in.tab.Read(ctx, "0", nil); err != nil {
		return err
	}
	f.empty = append(f.empty, time.Since(began))
	began = time.Now()
	var text string
	var seen pagejs.Page
	if err := in.tab.Read(ctx, fmt.Sprintf("Promise.resolve(kit.observe(%s)).then((seen) => JSON.stringify(seen))", argument), &text); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), &seen); err != nil {
		return err
	}
	f.call = append(f.call, time.Since(began))
	for k, ms := range []float64{seen.Cost.Survey, seen.Cost.Select, seen.Cost.Describe, seen.Cost.Extras} {
		f.inner[k] = append(f.inner[k], time.Duration(ms*float64(time.Millisecond)))
	}
	return nil
}

// printPhases shows medians. What the page's own clock does not cover is the
// way there and back: JSON on both sides, pipe, decoding.
func (f *figures) printPhases(w io.Writer) {
	fmt.Fprintf(w, "\nWhere our snapshot's time goes, milliseconds, medians\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "page\tempty call\tobservation\tover empty\tsurvey\tselect\tdescribe\ttext, regions\tthere and back\tthe programs around it\twhole")
	for _, p := range f.pages {
		one := f.inside[p.name]
		call, rest := one.call.median(), one.call.median()
		fmt.Fprintf(t, "%s\t%s\t%s\t%s", p.name, millis(one.empty.median()), millis(call), millis(call-one.empty.median()))
		for _, inner := range one.inner {
			rest -= inner.median()
			fmt.Fprintf(t, "\t%s", millis(inner.median()))
		}
		whole := f.seen[p.name][0].snapshot.median()
		fmt.Fprintf(t, "\t%s\t%s\t%s\n", millis(max(rest, 0)), millis(whole-call), millis(whole))
	}
	t.Flush()
}
