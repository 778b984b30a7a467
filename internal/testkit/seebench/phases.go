package main

import (
	"context"
	"encoding/json"
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
// in the product, but in the page's own world, where a call costs the same.
type phases struct {
	empty spread // a call that does nothing
	call  spread // an observation, decoded
	inner [4]spread
}

// measurePhases observes every page directly, without any of the programs.
func measurePhases(ctx context.Context, o options, devFile string) (map[string]*phases, error) {
	dev, err := devmode.Load(devFile)
	if err != nil {
		return nil, err
	}
	c := person.Config{Chromium: o.chromium, Width: 1280, Height: 800, Dev: dev}
	if os.Geteuid() == 0 {
		c.UID = personUID
	}
	browser, err := person.Launch(ctx, c)
	if err != nil {
		return nil, err
	}
	defer browser.Close()
	tab, err := browser.NewTab(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]*phases{}
	for _, p := range pages() {
		out[p.name] = &phases{}
		if err := out[p.name].measure(ctx, tab, p, o.rounds); err != nil {
			return nil, fmt.Errorf("phases of the page %s: %w", p.name, err)
		}
	}
	return out, nil
}

func (f *phases) measure(ctx context.Context, tab *person.Tab, p page, rounds int) error {
	if err := tab.Open(ctx, p.url()); err != nil {
		return err
	}
	if err := tab.Read(ctx, "void (globalThis.kit = "+pagejs.Source()+")", nil); err != nil {
		return err
	}
	for i := range rounds {
		began := time.Now()
		if err := tab.Read(ctx, "0", nil); err != nil {
			return err
		}
		f.empty = append(f.empty, time.Since(began))
		argument, err := json.Marshal(pagejs.ObserveArgs{Revision: fmt.Sprint("round", i), Regions: true})
		if err != nil {
			return err
		}
		began = time.Now()
		var text string
		var seen pagejs.Page
		if err := tab.Read(ctx, fmt.Sprintf("Promise.resolve(kit.observe(%s)).then((seen) => JSON.stringify(seen))", argument), &text); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &seen); err != nil {
			return err
		}
		f.call = append(f.call, time.Since(began))
		for k, ms := range []float64{seen.Cost.Survey, seen.Cost.Select, seen.Cost.Describe, seen.Cost.Extras} {
			f.inner[k] = append(f.inner[k], time.Duration(ms*float64(time.Millisecond)))
		}
	}
	return nil
}

// printPhases shows medians. What the page's own clock does not cover is the
// way there and back: JSON on both sides, pipe, decoding.
func printPhases(w io.Writer, pages []page, all map[string]*phases, f *figures) {
	fmt.Fprintf(w, "\nWhere our snapshot's time goes, milliseconds, medians\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "page\tempty call\tobservation\tover empty\tsurvey\tselect\tdescribe\ttext, regions\tthere and back\tthe programs around it\twhole")
	for _, p := range pages {
		one := all[p.name]
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
