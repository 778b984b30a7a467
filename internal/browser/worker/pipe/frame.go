// Package pipe carries a browser.Page across the boundary between the isolated
// browser service and one worker: framed JSON over an inherited socket, with
// numbered calls, cancellation and pictures (EPH-01, TRUST-04). Client is the
// service's end and treats what arrives as written by an enemy, because a
// worker may have been taken over by a page; Serve is the worker's end.
// Nothing that crosses is ever logged.
package pipe

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
)

// Setup is the first call: what the worker is to launch.
type Setup struct {
	Origins    site.Origins `json:"origins"`
	Headed     bool         `json:"headed"`
	Challenges bool         `json:"challenges"`
	Specified  bool         `json:"specified"`
	Proxy      string       `json:"proxy"` // "127.0.0.1:port", the only way out
	Home       string       `json:"home"`
	PolicyDir  string       `json:"policy_dir,omitempty"` // for managed policies; "" when there is no private one
	Chromium   string       `json:"chromium"`
	Xvfb       string       `json:"xvfb,omitempty"`
	TrustedCA  []byte       `json:"trusted_ca,omitempty"` // PEM, development mode only
}

// act is the body of opAct.
type act struct {
	Action     action.Action          `json:"action"`
	Constraint *constraint.Constraint `json:"constraint,omitempty"`
}

// kind says what a frame is.
type kind byte

const (
	request kind = iota + 1 // service to worker: op, arguments
	cancel                  // service to worker: give call id up
	reply                   // worker to service: result of call id
	failure                 // worker to service: error of call id
	picture                 // worker to service: one browser.Frame of stream id
	ended                   // worker to service: stream id has no more
)

// op is a method of browser.Page.
type op byte

const (
	opLaunch op = iota + 1
	opRestore
	opNavigate
	opObserve
	opAct
	opCapture
	opEvidence
	opFrames
	opInput
	opUpload
	opPicture
)

// sends reports whether the op may have an effect that is not to be repeated.
func (o op) sends() bool { return o == opAct || o == opUpload || o == opInput }

// Sizes of a frame's body, in bytes of JSON.
const (
	small       = 256 << 10
	documentMax = 8 << 20 // an observation at every bound, escaped
	uploadMax   = 7 << 20 // an image at its bound, in base64
	pictureMax  = 8 << 20
)

// limit is the largest body of a frame of kind k that belongs to o.
func limit(k kind, o op) int {
	switch {
	case k == request && o == opRestore, k == reply && o == opCapture:
		return browser.MaxMaterial
	case k == request && o == opUpload:
		return uploadMax
	case k == reply && o == opPicture:
		return 2 * browser.MaxPicture
	case k == reply && (o == opNavigate || o == opObserve || o == opAct || o == opUpload):
		return documentMax
	case k == picture:
		return pictureMax
	default:
		return small
	}
}

// header precedes every body: length, kind, op, call.
type header struct {
	length int
	kind   kind
	op     op
	id     uint64
}

const headerSize = 14

// writeTime bounds one write; a peer that reads nothing for so long is lost.
const writeTime = 30 * time.Second

// writer sends whole frames, one at a time.
type writer struct {
	mu   sync.Mutex
	conn *net.UnixConn
}

func (w *writer) send(k kind, o op, id uint64, body []byte) error {
	if len(body) > limit(k, o) {
		return errTooLarge
	}
	var head [headerSize]byte
	binary.BigEndian.PutUint32(head[0:], uint32(len(body)))
	head[4], head[5] = byte(k), byte(o)
	binary.BigEndian.PutUint64(head[6:], id)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn.SetWriteDeadline(time.Now().Add(writeTime))
	buffers := net.Buffers{head[:], body}
	if _, err := buffers.WriteTo(w.conn); err != nil {
		// The stream may now end inside a frame.
		w.conn.Close()
		return fmt.Errorf("pipe: write: %w", err)
	}
	return nil
}

var (
	errTooLarge = errors.New("pipe: a frame is over its limit")
	errProtocol = errors.New("pipe: the other end broke the protocol")
)

func readHeader(r io.Reader) (header, error) {
	var b [headerSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return header{}, err
	}
	return header{
		length: int(binary.BigEndian.Uint32(b[0:])), kind: kind(b[4]), op: op(b[5]), id: binary.BigEndian.Uint64(b[6:]),
	}, nil
}

// readBody reads the body after its length was found acceptable.
func readBody(r io.Reader, h header) ([]byte, error) {
	if h.length > limit(h.kind, h.op) {
		return nil, errTooLarge
	}
	body := make([]byte, h.length)
	_, err := io.ReadFull(r, body)
	return body, err
}

// wireFault is an error on the pipe: never its cause, and none of its words.
type wireFault struct {
	Code      fault.Code `json:"code"`
	Reason    int        `json:"reason,omitempty"` // which of the sentences of the code
	Retryable bool       `json:"retryable,omitempty"`
}

func encodeFault(err error) []byte {
	e := fault.Public(err)
	b, err := json.Marshal(wireFault{e.Code, reasonOf(e), e.Retryable})
	if err != nil {
		b = []byte("{}") // an error without a code is as good as nameless
	}
	return b
}

// decodeFault reads an error of the worker's. A code that no page answers with,
// such as an approval's, becomes fault.Internal.
func decodeFault(body []byte) *fault.Error {
	var w wireFault
	if err := json.Unmarshal(body, &w); err != nil || sentences[w.Code] == nil {
		return fault.New(fault.Internal, "The browser failed in a way that has no name. Nothing more was done.")
	}
	return &fault.Error{Code: w.Code, Public: sentence(w.Code, w.Reason), Retryable: w.Retryable}
}
