package remote

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Upload implements browser.Service.
func (c *Client) Upload(ctx context.Context, h lease.Held, permit grant.Permit, r action.Request, image artifact.Payload) (observe.Document, error) {
	if !h.Valid() || !permit.For(r.Digest) || r.Tool != action.Upload || r.Image != image.ID || !image.Valid() {
		return observe.Document{}, fault.New(fault.ActionNotAllowed, "The upload has no lease, no permit or not its image. Nothing was sent.")
	}
	arguments, err := json.Marshal(r.Arguments())
	if err != nil {
		return observe.Document{}, fault.Wrap(fault.Internal, "The upload could not be written. Nothing was sent.", err)
	}
	var d observe.Document
	err = c.call(ctx, request{
		path: "/v1/browser-sessions:upload", key: ActKey(h.Ref(), h.Sequence()), status: http.StatusOK, limit: MaxObservation, act: true, large: MaxUpload,
		body: UploadRequest{
			LeaseRef: h.Ref(), Sequence: h.Sequence(), Action: arguments,
			Image: UploadImage{Filename: image.Name(), MediaType: image.Type, SHA256: image.SHA256, Data: image.Data.Reveal()},
		},
	}, &d)
	if err != nil {
		return observe.Document{}, err
	}
	return d, nil
}

// Picture implements browser.Service.
func (c *Client) Picture(ctx context.Context, h lease.Held, revision, ref string) (browser.Picture, error) {
	if !h.Valid() {
		return browser.Picture{}, fault.New(fault.ProfileUnavailable, "There is no lease. Nothing was shown.")
	}
	var a PictureAnswer
	r := request{
		path: "/v1/browser-sessions:picture", status: http.StatusOK, limit: MaxObservation,
		body: PictureRequest{LeaseRef: h.Ref(), Revision: revision, Ref: ref},
	}
	if err := c.call(ctx, r, &a); err != nil {
		return browser.Picture{}, err
	}
	p := browser.Picture{JPEG: a.JPEG, Width: a.Width, Height: a.Height, Box: a.Box}
	if !p.Valid() {
		return browser.Picture{}, unreadable(r)
	}
	return p, nil
}
