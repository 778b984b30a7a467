package policy

import (
	"strings"

	"github.com/chaperone-agents/chaperone/internal/base/site"
)

// acts are the words that, as a whole segment of a path, name something that
// is done and not something that is read. Websites should do nothing when an
// address is merely opened; some do, and some are one step short of it.
var acts = map[string]bool{
	"pay": true, "paynow": true, "checkout": true, "buy": true, "buynow": true, "purchase": true, "placeorder": true, "addtocart": true, "donate": true,
	"withdraw": true, "delete": true, "remove": true, "destroy": true, "erase": true, "purge": true, "cancel": true, "deactivate": true, "unsubscribe": true,
	"logout": true, "logoff": true, "signout": true, "revoke": true, "disconnect": true, "unlink": true, "confirm": true, "accept": true, "publish": true,
}

// namesAct reports whether the address itself names an act.
func namesAct(u site.URL) bool {
	for segment := range strings.SplitSeq(strings.ToLower(u.DecodedPath()), "/") {
		word, _, _ := strings.Cut(segment, ".") // checkout.php
		word, _, _ = strings.Cut(word, ";")
		if acts[strings.NewReplacer("-", "", "_", "", " ", "").Replace(word)] {
			return true
		}
	}
	return false
}
