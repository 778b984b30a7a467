package browserd

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

// Upload implements browser.Service.
func (s *Service) Upload(ctx context.Context, h lease.Held, permit grant.Permit, r action.Request, image artifact.Payload) (observe.Document, error) {
	if !h.Valid() || !permit.For(r.Digest) {
		return observe.Document{}, fault.New(fault.ActionNotAllowed, "The call has no lease or no permit. Nothing was sent.")
	}
	return s.DispatchUpload(ctx, h.Ref(), h.Sequence(), r, image)
}

// DispatchUpload is Dispatch for an upload with its image (UPL-08).
func (s *Service) DispatchUpload(ctx context.Context, ref string, sequence int64, r action.Request, image artifact.Payload) (observe.Document, error) {
	if r.Tool != action.Upload || r.Image != image.ID || !image.Valid() {
		return observe.Document{}, fault.New(fault.ActionNotAllowed, "That is no upload of that image. Nothing was sent.")
	}
	return s.dispatch(ctx, ref, sequence, r, cargo{image: image})
}

// Picture implements browser.Service.
func (s *Service) Picture(ctx context.Context, h lease.Held, revision, ref string) (browser.Picture, error) {
	if !h.Valid() {
		return browser.Picture{}, ended()
	}
	return s.PictureOf(ctx, h.Ref(), revision, ref)
}

// PictureOf is Picture for a caller that was authenticated. It waits for an
// operation under way, and never disturbs one.
func (s *Service) PictureOf(ctx context.Context, ref, revision, element string) (browser.Picture, error) {
	l, err := s.find(ref)
	if err != nil {
		return browser.Picture{}, err
	}
	ctx, leave, err := s.turn(ctx, l)
	if err != nil {
		return browser.Picture{}, err
	}
	defer leave()
	ctx, stop := context.WithTimeout(ctx, s.left(l))
	defer stop()
	p, err := l.rt.page.Picture(ctx, revision, element)
	if l.rt.dead() {
		s.retire(l)
	}
	if err != nil {
		return browser.Picture{}, operationFailed(action.Observe, err)
	}
	if !p.Valid() {
		return browser.Picture{}, fault.New(fault.OutputInvalid, "The browser's picture is not within bounds.")
	}
	return p, nil
}
