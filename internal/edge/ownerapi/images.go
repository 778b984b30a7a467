package ownerapi

import (
	"bytes"
	"context"
	"mime"

	"github.com/chaperone-agents/chaperone/internal/edge/ownerapi/oas"
)

// inert is the policy of answers that carry bytes of a website or of a file: a
// browser that opens one by itself runs and loads nothing of it.
const inert = "default-src 'none'; sandbox"

func (h *handler) GetPicture(ctx context.Context, r oas.GetPictureRequestObject) (oas.GetPictureResponseObject, error) {
	p, err := h.Calls.Picture(ctx, h.by, r.ApprovalId)
	if err != nil {
		return nil, err
	}
	return oas.GetPicture200JSONResponse{
		Body: oas.Picture{
			Jpeg: p.JPEG, Width: p.Width, Height: p.Height,
			Box: oas.Box{X: p.Box.X, Y: p.Box.Y, Width: p.Box.Width, Height: p.Box.Height},
		},
		Headers: oas.GetPicture200ResponseHeaders{ContentSecurityPolicy: inert},
	}, nil
}

func (h *handler) ListImages(ctx context.Context, r oas.ListImagesRequestObject) (oas.ListImagesResponseObject, error) {
	list, err := h.Images.List(ctx, h.by, r.SessionId)
	return oas.ListImages200JSONResponse{Images: each(list, imageView)}, err
}

func (h *handler) AttachImage(ctx context.Context, r oas.AttachImageRequestObject) (oas.AttachImageResponseObject, error) {
	i, err := h.Images.Attach(ctx, h.by, r.SessionId, r.Body)
	return oas.AttachImage201JSONResponse(imageView(i)), err
}

func (h *handler) GetImage(ctx context.Context, r oas.GetImageRequestObject) (oas.GetImageResponseObject, error) {
	p, err := h.Images.Content(ctx, h.by, r.SessionId, r.ImageId)
	if err != nil {
		return nil, err
	}
	return oas.GetImage200ApplicationoctetStreamResponse{
		Body: bytes.NewReader(p.Data.Reveal()), ContentLength: int64(p.Data.Len()),
		Headers: oas.GetImage200ResponseHeaders{
			ContentDisposition:    mime.FormatMediaType("attachment", map[string]string{"filename": p.Name()}),
			ContentSecurityPolicy: inert,
		},
	}, nil
}

func (h *handler) RemoveImage(ctx context.Context, r oas.RemoveImageRequestObject) (oas.RemoveImageResponseObject, error) {
	return oas.RemoveImage204Response{}, h.Images.Remove(ctx, h.by, r.SessionId, r.ImageId)
}
