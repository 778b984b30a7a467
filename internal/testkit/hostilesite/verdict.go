package hostilesite

import (
	"errors"
	"fmt"
	"slices"
)

// OK is the effect that the owner approved; every other word is one that nobody
// approved.
const OK = "ok"

// Codes of answers that do not say that nothing was sent.
var sent = []string{"tool.browser.outcome_unknown", "tool.browser.url_disallowed", "tool.browser.navigation_cancelled"}

// Sent says that the answer leaves room for an effect.
func Sent(code string) bool { return slices.Contains(sent, code) }

// Judge compares the answer to one approved act with what the site saw. silent
// says that the act cannot have an effect of its own.
func Judge(code string, effects []string, silent bool) error {
	ok := 0
	for _, e := range effects {
		if e != OK {
			return fmt.Errorf("an effect that nobody approved: %q after %q", effects, code)
		}
		ok++
	}
	switch {
	case ok > 1:
		return fmt.Errorf("one yes had %d effects", ok)
	case ok > 0 && silent:
		return fmt.Errorf("an effect on what is not what was approved, after %q", code)
	case ok > 0 && code != "" && !Sent(code):
		return fmt.Errorf("%q, but it happened", code)
	case ok == 0 && code == "" && !silent:
		return errors.New("said to be done, but nothing happened")
	}
	return nil
}
