package driver

import (
	"context"

	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// keepDraft remembers what was typed into a rich-text editor, so that a later
// observation can say that it is still there (DRAFT-01). No grant covers such
// an act: its owner approved exactly this text. A page that cannot answer has
// no receipt.
func (p *Page) keepDraft(ctx context.Context, t aimed, text string) {
	var bound bool
	if err := p.in(ctx, t.world, pagejs.KeepDraft, t.args, &bound); err != nil || !bound {
		return
	}
	p.draft = text
}

// echo adds the draft where the page has confirmed it and it fits (DRAFT-02,
// DRAFT-04, DRAFT-05).
func (p *Page) echo(d *observe.Document, state pagejs.DraftState) {
	switch state {
	case pagejs.DraftHolds:
		if len(d.Text)+len(p.draft) <= observe.MaxText {
			d.Draft = p.draft
		}
	case pagejs.DraftElsewhere:
	default:
		p.draft = ""
	}
}
