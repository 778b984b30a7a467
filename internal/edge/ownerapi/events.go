package ownerapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/edge/ownerapi/oas"
)

const (
	keepAlive = 20 * time.Second
	writeTime = 10 * time.Second // for one event; a reader that is slower is dropped
	batch     = 200
)

// StreamEvents sends the audit trail's numbers, kinds and subjects as they
// grow. No page content is in them.
func (h *handler) StreamEvents(ctx context.Context, r oas.StreamEventsRequestObject) (oas.StreamEventsResponseObject, error) {
	select {
	case h.streams <- struct{}{}:
	default:
		return nil, fault.New(fault.Conflict, "Too many event streams are open. Close one and try again.").Retry()
	}
	after, err := h.start(ctx, r.Params.LastEventID)
	if err != nil {
		<-h.streams
		return nil, err
	}
	return &stream{handler: h, ctx: ctx, after: after}, nil
}

// start is the number that the stream begins behind: the one that the reader
// has seen, or the newest.
func (h *handler) start(ctx context.Context, seen *string) (int64, error) {
	if seen != nil {
		n, err := strconv.ParseInt(*seen, 10, 64)
		if err != nil || n < 0 {
			return 0, fault.New(fault.MalformedRequest, "Last-Event-ID is not an audit number.")
		}
		return n, nil
	}
	newest, err := h.Owner.Audit(ctx, h.by, -1, 1)
	if err != nil || len(newest) == 0 {
		return 0, err
	}
	return newest[0].Number, nil
}

// stream is an open event stream.
type stream struct {
	*handler
	ctx   context.Context // of the request; the stream is its answer
	after int64
}

// VisitStreamEventsResponse writes until the reader goes, its device is
// revoked, or the store fails.
func (s *stream) VisitStreamEventsResponse(w http.ResponseWriter) error {
	defer func() { <-s.streams }()
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	text := ": open\n\n"
	for {
		out.SetWriteDeadline(time.Now().Add(writeTime)) // not every writer has one; the others block no lock
		if _, err := w.Write([]byte(text)); err != nil {
			return nil // the reader has gone
		}
		if err := out.Flush(); err != nil {
			return nil
		}
		next := s.Hub.Next(s.by.Scope)
		if err := s.again(s.ctx); err != nil {
			return nil
		}
		var err error
		if text, err = s.news(); err != nil {
			s.Log.Warn("event stream ended", "code", fault.CodeOf(err))
			return nil
		}
		if text != "" {
			continue
		}
		select {
		case <-next:
		case <-beat.C:
			text = ": still here\n\n"
		case <-s.ctx.Done():
			return nil
		}
	}
}

// news is what has been written behind the last number sent.
func (s *stream) news() (text string, err error) {
	entries, err := s.Owner.Audit(s.ctx, s.by, s.after, batch)
	for _, e := range entries {
		data, err := json.Marshal(map[string]any{"number": e.Number, "kind": e.Kind, "subject": e.Subject})
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf("id: %d\nevent: audit\ndata: %s\n\n", e.Number, data)
		s.after = e.Number
	}
	return text, err
}
