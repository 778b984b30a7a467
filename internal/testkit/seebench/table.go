package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// Targets, as the peer's time over ours.
var (
	snapshotTarget = map[string]float64{"table": 10, "dense": 10, "huge": 10, "form": 1}
	observedTarget = map[string]float64{"table": 3, "huge": 3} // 1 elsewhere
)

const (
	maxTokens    = 4000
	maxToolBytes = 8000
	maxMemory    = 0.60 // of the peer's
)

// printPages is for the pages that were measured, one at least.
func (f *figures) printPages(w io.Writer) {
	fmt.Fprintf(w, "\n%s beside %s, milliseconds: median (min-max), n %d\n\n", f.names[0], f.names[1], len(f.seen[f.pages[0].name][0].snapshot))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "page\twhat\tours\tpeer\tratio\ttarget\tmet\ttokens ours\ttokens peer")
	for _, p := range f.pages {
		ours, peer := &f.seen[p.name][0], &f.seen[p.name][1]
		want := 1.0
		if more, ok := observedTarget[p.name]; ok {
			want = more
		}
		if peer.gaveUp > 0 {
			fmt.Fprintf(t, "%s\t(the peer gave up %d times; its limit counts as its time)\t\t\t\t\t\t\t\n", p.name, peer.gaveUp)
		}
		row(t, p.name, "snapshot", ours.snapshot, peer.snapshot, snapshotTarget[p.name])
		fmt.Fprintf(t, "\t%d\t%d\n", ours.tokens, peer.tokens)
		row(t, p.name, "navigate, the call", ours.navigate, peer.navigate, 0)
		fmt.Fprintln(t, "\t\t")
		if ours.late+peer.late == 0 {
			row(t, p.name, "navigate + observation", ours.observed, peer.observed, want)
			fmt.Fprintln(t, "\t\t")
			continue
		}
		// An observation without the content is no answer to be faster than.
		row(t, p.name, fmt.Sprintf("+ observation, incomplete %d and %d times", ours.late, peer.late), ours.observed, peer.observed, 0)
		fmt.Fprintln(t, "\t\t")
		row(t, p.name, "navigate + complete observation", ours.complete, peer.complete, want)
		fmt.Fprintln(t, "\t\t")
	}
	t.Flush()
}

// printTotals is for a run that measured everything.
func (f *figures) printTotals(w io.Writer) {
	most := 0
	for _, both := range f.seen {
		most = max(most, both[0].tokens)
	}
	share := float64(f.memory[0]) / float64(f.memory[1])
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "figure\tours\tpeer\ttarget\tmet")
	fmt.Fprintf(t, "largest answer, tokens\t%d\t\tat most %d\t%s\n", most, maxTokens, yes(most <= maxTokens))
	fmt.Fprintf(t, "tools/list, bytes\t%d\t%d\tat most %d\t%s\n", f.tools[0], f.tools[1], maxToolBytes, yes(f.tools[0] <= maxToolBytes))
	fmt.Fprintf(t, "memory after the huge page, MiB (processes)\t%d (%d)\t%d (%d)\tat most %.0f %%\t%s, %.0f %%\n",
		f.memory[0]>>20, f.process[0], f.memory[1]>>20, f.process[1], maxMemory*100, yes(share <= maxMemory), share*100)
	late := f.seen["late"]
	fmt.Fprintf(t, "late page complete at first sight\t%s\t%s\tyes\t%s\n", yes(late[0].late == 0), yes(late[1].late == 0), yes(late[0].late == 0))
	t.Flush()
}

// row begins a line; target 0 is none.
func row(w io.Writer, page, what string, ours, peer spread, target float64) {
	ratio := float64(peer.median()) / float64(ours.median())
	aim, met := "", ""
	if target > 0 {
		aim, met = fmt.Sprintf("%g x", target), yes(ratio >= target)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1f\t%s\t%s", page, what, ours, peer, ratio, aim, met)
}

func (s spread) String() string {
	return fmt.Sprintf("%s (%s-%s)", millis(s.median()), millis(slices.Min(s)), millis(slices.Max(s)))
}

func millis(d time.Duration) string {
	ms := float64(d.Microseconds()) / 1000
	if ms < 10 {
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
