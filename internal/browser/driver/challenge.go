package driver

import (
	"context"
	"errors"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// needsUser: the page asks for something that only the owner can give. No
// reference outlives it (section 2.5, REC-02).
func needsUser() error {
	return fault.New(fault.NeedsUser, "The page asks for its owner: a sign-in, a code or a check that a person is there. Nothing was read or sent; ask the owner to sign in.")
}

// gate refuses an act while the page asks for its owner.
func (p *Page) gate(ctx context.Context) error {
	if !p.config.Challenges {
		return nil
	}
	var asked bool
	if err := p.bounded(ctx, inputBound, pagejs.Challenge, pagejs.ChallengeArgs{}, &asked); err != nil {
		return p.unreadable(err)
	}
	if !asked {
		return nil
	}
	p.mu.Lock()
	p.revision = ""
	p.mu.Unlock()
	return errors.Join(needsUser(), p.forget(ctx))
}

// interrupted is all that is said of a page that asks for its owner after an
// input was sent: where it is, and nothing of what it shows (CHAL-01).
func (p *Page) interrupted() (observe.Document, error) {
	p.mu.Lock()
	u, err := site.ParseURL(p.doc.url)
	p.mu.Unlock()
	if err != nil || !p.config.Origins.Has(u.Origin()) {
		return observe.Document{}, needsUser()
	}
	return observe.Document{URL: u.String(), Revision: ident.Hex(16), Elements: []observe.Element{}, Interruption: observe.NeedsUser}, nil
}
