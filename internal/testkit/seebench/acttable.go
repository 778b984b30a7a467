package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// actTarget is the peer's time over ours.
var actTarget = map[string]float64{"act-form": 1, "act-dense": 2, "act-huge": 2}

// print shows the pages that were measured whole.
func (f *actFigures) print(w io.Writer) {
	if len(f.pages) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s beside %s, milliseconds: median (min-max), n %d; every effect was found in the site's log, once\n\n",
		f.names[0], f.names[1], len(f.all[f.pages[0].name][0]))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "page\twhat\tours\tpeer\tratio\ttarget\tmet\textra looks ours\textra looks peer")
	for _, p := range f.pages {
		for _, kind := range kinds {
			ours, peer := &f.acted[p.name][kind][0], &f.acted[p.name][kind][1]
			row(t, p.name, kind+", the call", ours.call, peer.call, 0)
			fmt.Fprintln(t, "\t\t")
			row(t, p.name, kind+" + observation of its effect", ours.shown, peer.shown, actTarget[p.name])
			fmt.Fprintf(t, "\t%d\t%d\n", ours.looks, peer.looks)
			if peer.gaveUp > 0 {
				fmt.Fprintf(t, "%s\t(the peer gave up %d observations; its limit counts as its time)\t\t\t\t\t\t\t\n", p.name, peer.gaveUp)
			}
		}
		all := f.all[p.name]
		row(t, p.name, "one of each", all[0], all[1], actTarget[p.name])
		fmt.Fprintln(t, "\t\t")
	}
	t.Flush()
}
