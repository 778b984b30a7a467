package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// count is how many labels of a class there were, how many were gated, and how
// many got just that class.
type count struct{ all, named, exact int }

func (c *count) add(o count) { c.all += o.all; c.named += o.named; c.exact += o.exact }

type cell struct {
	lang   string
	class  consequence.Consequence
	tuning bool
}

type result map[cell]count

// classify is what the worker asks for a click on a button with that label.
func classify(text string) consequence.Consequence {
	return consequence.Classify(consequence.Subject{Act: "click", Role: "button", Labels: []string{text}, Field: observe.FieldNone})
}

func measure(labels []label) result {
	r := result{}
	for _, l := range labels {
		got := classify(l.text)
		c := count{all: 1}
		if got.Named() {
			c.named = 1
		}
		if got == l.class {
			c.exact = 1
		}
		at := cell{l.lang, l.class, l.tuning}
		sum := r[at]
		sum.add(c)
		r[at] = sum
	}
	return r
}

// print writes one table per half.
func (r result) print(w io.Writer) {
	for _, half := range []struct {
		tuning bool
		title  string
	}{{true, "Tuning half"}, {false, "Held-out half"}} {
		fmt.Fprintf(w, "%s. Named: labels of named classes that get any named consequence; same: that get just their class.\n", half.title)
		fmt.Fprintln(w, "False alarms: neutral labels that get a named consequence.")
		r.table(w, half.tuning)
		fmt.Fprintln(w)
		r.classes(w, half.tuning)
		fmt.Fprintln(w)
	}
}

func (r result) table(w io.Writer, tuning bool) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "language\tlabels\tnamed\t\tsame\t\tneutral\tfalse alarms\t\t")
	for _, l := range languages {
		var named, neutral count
		for at, c := range r {
			switch {
			case at.lang != l.lang || at.tuning != tuning:
			case at.class.Named():
				named.add(c)
			default:
				neutral.add(c)
			}
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%d\t%s\t%d\t%d\t%s\t\n", l.lang, named.all, named.named, percent(named.named, named.all),
			named.exact, percent(named.exact, named.all), neutral.all, neutral.named, percent(neutral.named, neutral.all))
	}
	t.Flush()
}

// classes writes the recall per class and language: gated of all.
func (r result) classes(w io.Writer, tuning bool) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "named of all\t")
	for _, l := range languages {
		fmt.Fprint(t, l.lang, "\t")
	}
	fmt.Fprintln(t)
	for _, class := range consequence.All() {
		if !class.Named() {
			continue
		}
		fmt.Fprint(t, class, "\t")
		for _, l := range languages {
			c := r[cell{l.lang, class, tuning}]
			if c.all == 0 {
				fmt.Fprint(t, "-\t")
			} else {
				fmt.Fprintf(t, "%d/%d\t", c.named, c.all)
			}
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

func percent(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(of))
}

// printMisses lists what the tuning half got wrong; the held-out half stays
// unseen.
func printMisses(w io.Writer, labels []label, lang string) {
	for _, l := range labels {
		got := classify(l.text)
		if l.tuning && (lang == "all" || l.lang == lang) && got.Named() != l.class.Named() {
			fmt.Fprintf(w, "%s\t%s\t%s\t%q is %s\n", l.lang, l.class, l.key, l.text, got)
		}
	}
}

// timing prints the median time of one classification per language, and as a
// ratio to English.
func timing(w io.Writer, labels []label) {
	const rounds = 7
	var english time.Duration
	fmt.Fprintln(w, "Time of one classification, median of", rounds, "rounds over all labels of a language, all vocabularies tried:")
	for _, l := range languages {
		var texts []string
		for _, x := range labels {
			if x.lang == l.lang {
				texts = append(texts, x.text)
			}
		}
		if len(texts) == 0 {
			continue
		}
		var took []time.Duration
		for range rounds {
			start := time.Now()
			for _, text := range texts {
				classify(text)
			}
			took = append(took, time.Since(start)/time.Duration(len(texts)))
		}
		slices.SortFunc(took, cmp.Compare[time.Duration])
		median := took[rounds/2]
		if l.lang == "en" {
			english = median
		}
		fmt.Fprintf(w, "  %s  %8v  %.1f times English\n", l.lang, median, float64(median)/float64(max(english, 1)))
	}
}
