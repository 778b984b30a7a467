package ceremonyweb

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/chaperone-agents/chaperone/internal/app/browserd"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
)

const (
	claimLimit = 10 * time.Second // to show the capability
	writeLimit = 10 * time.Second // for one message to leave
	maxMessage = 64 << 10         // bytes; 4096 characters fit in any spelling
	maxPicture = 4 << 20          // bytes of one JPEG
)

// fromPage is a message of the page: the capability first, then one of the
// others at a time.
type fromPage struct {
	Capability string         `json:"capability,omitempty"`
	Seq        int64          `json:"seq,omitempty"` // of the event
	Event      *browser.Input `json:"event,omitempty"`
	Finished   bool           `json:"finished,omitempty"`
	Cancel     bool           `json:"cancel,omitempty"`
}

// toPage is a text message to the page. Pictures are binary: width and height
// of the page as two 16-bit big-endian numbers, then a JPEG.
type toPage struct {
	Type string `json:"type"` // state, ack, resume

	State     string           `json:"state,omitempty"` // a browserd.Phase, or "refused"
	Origin    string           `json:"origin,omitempty"`
	Wanting   browserd.Wanting `json:"wanting,omitempty"`
	ExpiresIn int64            `json:"expires_in_ms,omitempty"` // from now; the clocks may differ

	Seq int64 `json:"seq,omitempty"` // ack: of the event
	OK  bool  `json:"ok,omitempty"`

	Capability string `json:"capability,omitempty"` // resume: for one reconnection of this page
}

// live is one connection of the page. What passes through it is never logged.
func (p *pages) live(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !ident.Valid(id) {
		absent(w, r)
		return
	}
	// A page always sends Origin here; the guard has compared it. Only a
	// program leaves it out, and none has business here.
	if len(r.Header["Origin"]) != 1 {
		httpx.Fail(w, fault.New(fault.Forbidden, "The connection must come from the sign-in page."))
		return
	}
	select {
	case p.waiting <- struct{}{}:
	default:
		httpx.Fail(w, fault.New(fault.ProviderUnavailable, "Too many connections are waiting.").Retry())
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		<-p.waiting
		return // Accept has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxMessage)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	v, err := p.claim(ctx, conn, id)
	<-p.waiting
	if err != nil {
		p.log.Info("a sign-in page was refused", "code", fault.CodeOf(err))
		if write(ctx, conn, toPage{Type: "state", State: "refused"}) == nil {
			conn.Close(websocket.StatusPolicyViolation, "refused")
		}
		return
	}
	defer v.Close()
	s := &session{conn: conn, v: v}
	if write(ctx, conn, toPage{Type: "resume", Capability: v.Next().Reveal()}) != nil {
		return
	}
	go s.pictures(ctx)
	go s.events(ctx, cancel)
	s.states(ctx)
}

// claim reads the capability, which must be the first message.
func (p *pages) claim(ctx context.Context, conn *websocket.Conn, id string) (*browserd.Viewer, error) {
	ctx, cancel := context.WithTimeout(ctx, claimLimit)
	defer cancel()
	m, err := read(ctx, conn)
	if err != nil || len(m.Capability) < 32 || len(m.Capability) > 128 {
		return nil, fault.New(fault.Forbidden, "The first message must be the capability.")
	}
	return p.service.Claim(id, secret.NewText(m.Capability))
}

// session is a connected page.
type session struct {
	conn *websocket.Conn
	v    *browserd.Viewer
}

// states tells the page each change and returns when there will be no more.
func (s *session) states(ctx context.Context) {
	for {
		st, changed := s.v.State()
		m := toPage{Type: "state", State: string(st.Phase), Origin: st.Origin, Wanting: st.Wanting, ExpiresIn: s.v.Left().Milliseconds()}
		if write(ctx, s.conn, m) != nil {
			return
		}
		if st.Status.Terminal() {
			s.conn.Close(websocket.StatusNormalClosure, "ended")
			return
		}
		select {
		case <-changed:
		case <-s.v.Replaced():
			s.conn.Close(websocket.StatusGoingAway, "connected again")
			return
		case <-ctx.Done():
			return
		}
	}
}

// pictures sends the page's pictures; the browser drops those that a slow
// connection has no time for.
func (s *session) pictures(ctx context.Context) {
	frames, err := s.v.Frames(ctx)
	if err != nil {
		return // the browser has gone; states says so
	}
	for f := range frames {
		if len(f.JPEG) > maxPicture || f.Width < 1 || f.Height < 1 || f.Width > 8192 || f.Height > 8192 {
			continue
		}
		b := make([]byte, 4, 4+len(f.JPEG))
		binary.BigEndian.PutUint16(b, uint16(f.Width))
		binary.BigEndian.PutUint16(b[2:], uint16(f.Height))
		ctx, cancel := context.WithTimeout(ctx, writeLimit)
		err := s.conn.Write(ctx, websocket.MessageBinary, append(b, f.JPEG...))
		cancel()
		if err != nil {
			return
		}
	}
}

// events carries the page's events out in their order, each acknowledged
// before the next is read (SURF-02). gone is called when the page has left.
func (s *session) events(ctx context.Context, gone context.CancelFunc) {
	defer gone()
	for {
		m, err := read(ctx, s.conn)
		if err != nil {
			return
		}
		switch {
		case m.Event != nil && m.Seq > 0:
			ok := s.v.Input(ctx, *m.Event) == nil
			if write(ctx, s.conn, toPage{Type: "ack", Seq: m.Seq, OK: ok}) != nil {
				return
			}
		case m.Finished:
			s.v.Check()
		case m.Cancel:
			s.v.Cancel()
		default:
			s.conn.Close(websocket.StatusPolicyViolation, "not a message of the sign-in page")
			return
		}
	}
}

// read is the next message. Its text is never part of the error.
func read(ctx context.Context, conn *websocket.Conn) (fromPage, error) {
	var m fromPage
	kind, b, err := conn.Read(ctx)
	if err != nil {
		return m, err
	}
	defer clear(b)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if kind != websocket.MessageText || d.Decode(&m) != nil {
		return fromPage{}, errNotOurs
	}
	if _, err := d.Token(); err != io.EOF {
		return fromPage{}, errNotOurs
	}
	return m, nil
}

var errNotOurs = fault.New(fault.MalformedRequest, "That is not a message of the sign-in page.")

func write(ctx context.Context, conn *websocket.Conn, m toPage) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, b)
}
