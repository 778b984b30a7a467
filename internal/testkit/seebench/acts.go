package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// kinds are the acts, in the order of a round.
var kinds = []string{"click", "type", "select"}

// act is one act and what the page then tells.
type act struct {
	kind, role, name, value string
	told                    string
}

// actsOf are the acts of a round. No two that follow each other tell the same.
func actsOf(round int) []act {
	word, colour := fmt.Sprint("word ", round+1), []string{"Red", "Blue"}[round%2]
	return []act{
		{"click", "button", buttonName, "", fmt.Sprint("click ", round+1)},
		{"type", "textbox", fieldName, word, "type " + word},
		{"select", "combobox", selectName, colour, "select " + colour},
	}
}

// acted is what one system did with one kind of act on one page.
type acted struct {
	call   spread // the one call
	shown  spread // from the call to an observation that shows the effect
	looks  int    // observations that had to be asked for
	gaveUp int    // how often an observation ended in its time limit, which counts as its time
}

// actFigures are what was measured of acts; index 0 is ours, 1 the peer's.
type actFigures struct {
	names [2]string
	pages []page // that were measured whole
	acted map[string]map[string]*[2]acted
	all   map[string]*[2]spread // a round: one act of each kind
}

// measureActs lets both systems do every act on every page, in turns. Each
// effect is looked for in the site's own log: doing nothing, or the same
// twice, ends the run.
func measureActs(ctx context.Context, systems [2]*system, site *effects, rounds int) (*actFigures, error) {
	f := &actFigures{acted: map[string]map[string]*[2]acted{}, all: map[string]*[2]spread{}}
	for i, s := range systems {
		f.names[i] = s.name
	}
	for _, p := range actPages() {
		began := time.Now()
		f.acted[p.name], f.all[p.name] = map[string]*[2]acted{}, &[2]spread{}
		for _, kind := range kinds {
			f.acted[p.name][kind] = &[2]acted{}
		}
		var actors [2]*actor
		for i, s := range systems {
			a := &actor{system: s, site: site, by: fmt.Sprintf("page=%s&side=%d", p.name, i)}
			if err := a.open(ctx, p); err != nil {
				return f, err
			}
			actors[i] = a
		}
		for round := range rounds {
			var whole [2]time.Duration
			for _, one := range actsOf(round) {
				for turn := range actors {
					i := (turn + round) % 2
					took, err := actors[i].do(ctx, one, &f.acted[p.name][one.kind][i])
					if err != nil {
						return f, fmt.Errorf("%s: %w", p.name, err)
					}
					whole[i] += took
				}
			}
			for i := range whole {
				f.all[p.name][i] = append(f.all[p.name][i], whole[i])
			}
		}
		f.pages = append(f.pages, p)
		say("%-9s %.1f s", p.name, time.Since(began).Seconds())
	}
	return f, nil
}

// actor is one system on one page.
type actor struct {
	system *system
	site   *effects
	by     string   // the query of its page's address
	done   []string // what the site must have been told
	last   string   // the newest observation
}

func (a *actor) open(ctx context.Context, p page) error {
	if _, err := a.system.call(ctx, a.system.navigate, map[string]any{"url": p.url() + "?" + a.by}); err != nil {
		return err
	}
	for began := time.Now(); ; {
		seen, err := a.system.look(ctx)
		if err != nil {
			return err
		}
		if a.last = seen.text; strings.Contains(seen.text, selectName) {
			return nil
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%s never shows the panel of %s", a.system.name, p.name)
		}
	}
}

// do measures one act until an observation shows its effect, and then asks the
// site what it was told.
func (a *actor) do(ctx context.Context, one act, into *acted) (time.Duration, error) {
	tool, args, err := a.system.act(one, a.last)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	got, err := a.system.call(ctx, tool, args)
	if err != nil {
		return 0, err
	}
	call, took, gaveUp := got.took, got.took, false
	for !strings.Contains(got.text, "Last: "+one.told+".") {
		if took > patience {
			return 0, fmt.Errorf("%s never shows the effect of %q", a.system.name, one.told)
		}
		if got, err = a.system.look(ctx); err != nil {
			return 0, err
		}
		into.looks++
		took = time.Since(began)
		if gaveUp = got.gaveUp; gaveUp {
			into.gaveUp++
			break
		}
	}
	into.call, into.shown = append(into.call, call), append(into.shown, took)
	if !gaveUp {
		a.last = got.text
	}
	a.done = append(a.done, one.told)
	return took, a.site.expect(ctx, a.by, a.done)
}
