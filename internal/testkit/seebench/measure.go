package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// spread is what was measured of one figure.
type spread []time.Duration

func (s spread) median() time.Duration { return slices.Sorted(slices.Values(s))[len(s)/2] }

// seen is what one system did with one page.
type seen struct {
	navigate spread // the one call
	snapshot spread // the one call, on a page that stands
	observed spread // from navigate to the first observation in the agent's hands
	complete spread // from navigate to an observation with the page's mark
	late     int    // how often the first observation had no mark
	gaveUp   int    // how often a call ended in its time limit, which counts as its time
	tokens   int    // the largest answer
}

// figures are everything that was measured; index 0 is ours, 1 the peer's.
type figures struct {
	names   [2]string
	pages   []page // that were measured whole
	seen    map[string]*[2]seen
	inside  map[string]*phases
	tools   [2]int64 // bytes of tools/list
	memory  [2]int64
	process [2]int
}

// measure lets both systems see every page, in turns: who begins changes with
// every round, so that neither always finds the machine as the other left it.
// With an error come the figures of the pages before it.
func measure(ctx context.Context, systems [2]*system, in *inside, rounds int) (*figures, error) {
	f, all := &figures{seen: map[string]*[2]seen{}, inside: in.seen}, pages()
	var err error
	for i, s := range systems {
		f.names[i] = s.name
		if f.tools[i], err = s.toolBytes(ctx); err != nil {
			return f, err
		}
		if _, err = s.open(ctx, all[0]); err != nil { // starts the browser
			return f, err
		}
	}
	for _, p := range all {
		began := time.Now()
		both := &[2]seen{}
		f.seen[p.name] = both
		for round := range rounds {
			if err := in.look(ctx, p, round); err != nil {
				return f, err
			}
			for turn := range systems {
				i := (turn + round) % 2
				if err := both[i].visit(ctx, systems[i], p); err != nil {
					return f, err
				}
			}
		}
		f.pages = append(f.pages, p)
		say("%-8s %.1f s", p.name, time.Since(began).Seconds())
	}
	for i, s := range systems {
		which, err := s.family()
		if err != nil {
			return f, err
		}
		if f.memory[i], f.process[i], err = memory(which); err != nil {
			return f, err
		}
	}
	return f, nil
}

// patience bounds the wait for a page's mark.
const patience = 10 * time.Second

// visit opens the page and looks until it sees the page's mark; the first look
// is measured by itself.
func (v *seen) visit(ctx context.Context, s *system, p page) error {
	began := time.Now()
	opened, err := s.open(ctx, p)
	if err != nil {
		return err
	}
	afterOpen := time.Since(began)
	looked, err := s.look(ctx)
	if err != nil {
		return err
	}
	first, after := looked, time.Since(began)
	if s.inNavigate {
		first, after = opened, afterOpen
	}
	v.navigate = append(v.navigate, opened.took)
	v.snapshot = append(v.snapshot, looked.took)
	v.observed = append(v.observed, after)
	v.tokens = max(v.tokens, opened.tokens(), looked.tokens())
	if opened.gaveUp || looked.gaveUp {
		v.gaveUp++
		v.complete = append(v.complete, after)
		return nil
	}
	if !strings.Contains(first.text, p.mark) {
		v.late++
		for after = time.Since(began); !strings.Contains(looked.text, p.mark); after = time.Since(began) {
			if after > patience {
				return fmt.Errorf("%s never shows %q on the page %s", s.name, p.mark, p.name)
			}
			if looked, err = s.look(ctx); err != nil {
				return err
			}
		}
	}
	v.complete = append(v.complete, after)
	return nil
}
