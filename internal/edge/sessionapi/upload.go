package sessionapi

import (
	"net/http"

	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/browser/remote"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
)

// upload takes the one body that may be large. The image is checked a second
// time here: type, size, signature, checksum and name (UPL-08).
func (a *api) upload(w http.ResponseWriter, r *http.Request) error {
	var b remote.UploadRequest
	if err := httpx.ReadJSON(w, r, remote.MaxUpload, &b); err != nil {
		return err
	}
	data := secret.NewBytes(b.Image.Data)
	defer data.Wipe()
	if err := keyed(r, remote.ActKey(b.LeaseRef, b.Sequence)); err != nil {
		return err
	}
	if !within(b.LeaseRef, 32, lease.MaxRef) || b.Sequence < 1 {
		return malformed()
	}
	q, err := action.Prepare(action.Upload, b.Action)
	if err != nil {
		return err
	}
	image := artifact.Payload{ID: q.Image, Type: b.Image.MediaType, SHA256: b.Image.SHA256, Data: data}
	if !image.Valid() || image.Name() != b.Image.Filename {
		return malformed()
	}
	d, err := a.service.DispatchUpload(r.Context(), b.LeaseRef, b.Sequence, q, image)
	return answerDocument(w, d, err)
}

func (a *api) picture(w http.ResponseWriter, r *http.Request) error {
	var b remote.PictureRequest
	if err := read(w, r, &b); err != nil {
		return err
	}
	if !within(b.LeaseRef, 32, lease.MaxRef) || !within(b.Revision, 1, action.MaxRef) || !within(b.Ref, 1, action.MaxRef) {
		return malformed()
	}
	p, err := a.service.PictureOf(r.Context(), b.LeaseRef, b.Revision, b.Ref)
	if err != nil {
		return err
	}
	httpx.WriteJSON(w, http.StatusOK, remote.PictureAnswer{JPEG: p.JPEG, Width: p.Width, Height: p.Height, Box: p.Box})
	return nil
}
