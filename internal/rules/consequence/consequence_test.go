package consequence

import (
	"testing"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

func click(labels ...string) Subject {
	return Subject{Act: "click", Role: "button", Labels: labels, Field: observe.FieldNone}
}

// CLS-04, CLS-05.
func TestWords(t *testing.T) {
	for label, want := range map[string]Consequence{
		"Pay now": Payment, "Check out": Payment, "Checking out": Payment, "Continue": Routine, "Continue $": Payment, "Hello": Unknown,
		"Log in": AuthenticationChange, "Рау now": Payment, "\u202eyaP\u202c now": Payment, "P a y": Payment, "De\u200blete": Destructive,
		"ＤＥＬＥＴＥ": Destructive, "Submitted": Publication, "Replied": Publication, "cοntinue": Unknown, "got it!": Routine,
		"\u202ey\u202dPa": Payment, "EUR100": Payment, "🅟🅐🅨": Payment, "ต่อไป": Unknown,
	} {
		if got := Classify(click(label)); got != want {
			t.Errorf("%q: %s, want %s", label, got, want)
		}
	}
}
