package pipe

import (
	"context"
	"encoding/json"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// upload is the body of opUpload.
type upload struct {
	Revision string        `json:"revision"`
	Ref      string        `json:"ref"`
	ID       string        `json:"id"`
	Type     artifact.Type `json:"type"`
	SHA256   string        `json:"sha256"`
	Data     []byte        `json:"data"`
}

// place is the body of opPicture.
type place struct {
	Revision string `json:"revision"`
	Ref      string `json:"ref"`
}

// Upload never reports a certain failure for an image that was possibly sent.
func (c *Client) Upload(ctx context.Context, a action.Action, image artifact.Payload) (observe.Document, error) {
	if a.Kind != action.Attach { // which the wire takes for granted
		return observe.Document{}, malformed()
	}
	body, err := json.Marshal(upload{a.ExpectedRevision, a.Ref, image.ID, image.Type, image.SHA256, image.Data.Reveal()})
	if err != nil {
		return observe.Document{}, fault.New(fault.Internal, "The image could not be sent.")
	}
	defer clear(body)
	return c.document(ctx, opUpload, body)
}

func (c *Client) Picture(ctx context.Context, revision, ref string) (browser.Picture, error) {
	body, err := json.Marshal(place{revision, ref})
	if err != nil {
		return browser.Picture{}, fault.New(fault.Internal, "The question could not be sent.")
	}
	body, err = c.call(ctx, opPicture, body)
	if err != nil {
		return browser.Picture{}, err
	}
	var p browser.Picture
	if json.Unmarshal(body, &p) != nil || !p.Valid() {
		return browser.Picture{}, unreadable()
	}
	return p, nil
}

// serveUpload and servePicture are the worker's end. An image that is not what
// it is said to be goes no further (UPL-08).
func (s *server) serveUpload(j job, page browser.Page) (observe.Document, error) {
	var u upload
	err := json.Unmarshal(j.body, &u)
	clear(j.body)
	image := artifact.Payload{ID: u.ID, Type: u.Type, SHA256: u.SHA256, Data: secret.NewBytes(u.Data)}
	defer image.Data.Wipe()
	if err != nil || !image.Valid() {
		return observe.Document{}, malformed()
	}
	return page.Upload(j.ctx, action.Action{Kind: action.Attach, ExpectedRevision: u.Revision, Ref: u.Ref}, image)
}

func (s *server) servePicture(j job, page browser.Page) (browser.Picture, error) {
	var at place
	if json.Unmarshal(j.body, &at) != nil {
		return browser.Picture{}, malformed()
	}
	return page.Picture(j.ctx, at.Revision, at.Ref)
}

func malformed() error {
	return fault.New(fault.ArgumentsInvalid, "The call could not be read. Nothing was done.")
}
