package fake

import (
	"context"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Upload records the image's checksum as the value of the effect.
func (p *Page) Upload(ctx context.Context, a action.Action, image artifact.Payload) (observe.Document, error) {
	if err := p.gone(ctx); err != nil {
		return observe.Document{}, err
	}
	if a.Kind != action.Attach || !image.Valid() {
		return observe.Document{}, fault.New(fault.ArgumentsInvalid, "The call could not be read. Nothing was done.")
	}
	c, err := p.target(a)
	if err != nil {
		return observe.Document{}, err
	}
	if field(c) != observe.FieldFile {
		return observe.Document{}, fault.New(fault.ActionNotAllowed, "The element asks for no file. Nothing was sent.")
	}
	return p.effect(ctx, a, c, image.SHA256)
}

// Picture shows nothing, in the right shape.
func (p *Page) Picture(ctx context.Context, revision, ref string) (browser.Picture, error) {
	if err := p.gone(ctx); err != nil {
		return browser.Picture{}, err
	}
	if _, err := p.target(action.Action{Kind: action.Click, ExpectedRevision: revision, Ref: ref}); err != nil {
		return browser.Picture{}, err
	}
	return browser.Picture{JPEG: []byte{0xff, 0xd8, 0xff, 0xd9}, Width: 640, Height: 360, Box: browser.Box{X: 280, Y: 160, Width: 80, Height: 40}}, nil
}

// Upload implements browser.Service.
func (s *Service) Upload(ctx context.Context, held lease.Held, permit grant.Permit, r action.Request, image artifact.Payload) (observe.Document, error) {
	if r.Tool != action.Upload || image.ID != r.Image || !image.Valid() {
		return observe.Document{}, fault.New(fault.ActionNotAllowed, "That is no upload of that image. Nothing was sent.")
	}
	page, err := s.take(held, permit, r)
	if err != nil {
		return observe.Document{}, err
	}
	return page.Upload(ctx, r.Action, image)
}

// Picture implements browser.Service.
func (s *Service) Picture(ctx context.Context, held lease.Held, revision, ref string) (browser.Picture, error) {
	s.mu.Lock()
	l, failure := s.leases[held.Ref()], s.failure
	if failure == nil && (!held.Valid() || l == nil || !s.now().Before(l.expires)) {
		failure = fault.New(fault.ProfileUnavailable, "The browser session has ended. Nothing was shown.")
	}
	s.mu.Unlock()
	if failure != nil {
		return browser.Picture{}, failure
	}
	return l.page.Picture(ctx, revision, ref)
}
