package pipe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// lastWords is how long calls under way may take to answer when the browser
// has gone.
const lastWords = 2 * time.Second

// Launch starts the browser of a worker.
type Launch func(ctx context.Context, s Setup) (browser.Page, error)

// Serve answers calls from conn until it or the browser ends; then it closes
// the browser. One call runs at a time, except input and pictures.
func Serve(ctx context.Context, conn *net.UnixConn, launch Launch) error {
	ctx, stop := context.WithCancel(ctx)
	s := &server{ctx: ctx, conn: conn, out: writer{conn: conn}, launch: launch, queue: make(chan job, 16), cancels: map[uint64]context.CancelFunc{}}
	var work sync.WaitGroup
	work.Go(func() {
		for j := range s.queue {
			s.run(j)
		}
	})
	err := s.read()
	stop()
	conn.Close()
	close(s.queue)
	s.closePage() // so that a call which ignores its context ends too
	work.Wait()
	s.side.Wait()
	s.closePage()
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

type server struct {
	ctx    context.Context
	conn   *net.UnixConn
	out    writer
	launch Launch
	queue  chan job
	side   sync.WaitGroup // calls beside the queue

	mu      sync.Mutex
	page    browser.Page
	cancels map[uint64]context.CancelFunc // of the calls under way
	quiet   chan struct{}                 // closed when there is none left; nil unless somebody waits
}

type job struct {
	ctx  context.Context
	op   op
	id   uint64
	body []byte
}

// read is the only reader of the connection.
func (s *server) read() error {
	r := bufio.NewReaderSize(s.conn, 64<<10)
	for {
		h, err := readHeader(r)
		if err != nil {
			return err
		}
		if h.kind == cancel && h.length == 0 {
			s.cancel(h.id)
			continue
		}
		if h.kind != request || h.op < opLaunch || h.op > opPicture {
			return errProtocol
		}
		body, err := readBody(r, h)
		if err != nil {
			return err
		}
		ctx, err := s.begin(h.id)
		if err != nil {
			return err
		}
		j := job{ctx: ctx, op: h.op, id: h.id, body: body}
		if h.op == opInput || h.op == opFrames {
			s.side.Go(func() { s.run(j) })
			continue
		}
		select {
		case s.queue <- j:
		default:
			return errProtocol // the service makes one call at a time
		}
	}
}

func (s *server) begin(id uint64) (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.cancels[id]; twice || len(s.cancels) > 64 {
		return nil, errProtocol
	}
	ctx, stop := context.WithCancel(s.ctx)
	s.cancels[id] = stop
	return ctx, nil
}

func (s *server) cancel(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stop := s.cancels[id]; stop != nil {
		stop()
	}
}

// end forgets a call that has been answered.
func (s *server) end(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stop := s.cancels[id]; stop != nil {
		stop()
	}
	delete(s.cancels, id)
	if len(s.cancels) == 0 && s.quiet != nil {
		close(s.quiet)
		s.quiet = nil
	}
}

func (s *server) run(j job) {
	defer s.end(j.id)
	if j.op == opFrames {
		s.pictures(j)
		return
	}
	result, err := s.answer(j)
	s.reply(j, result, err)
}

func (s *server) reply(j job, result []byte, err error) {
	if err == nil {
		if err = s.out.send(reply, j.op, j.id, result); err == errTooLarge {
			err = fault.New(fault.OutputInvalid, "The browser's answer is over its bound.")
			if j.op.sends() {
				err = unknown()
			}
		} else {
			return
		}
	}
	s.out.send(failure, j.op, j.id, encodeFault(err))
}

func (s *server) current() browser.Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.page
}

func (s *server) closePage() {
	if page := s.current(); page != nil {
		page.Close()
	}
}

// answer makes the one call that j asks for.
func (s *server) answer(j job) ([]byte, error) {
	page := s.current()
	if (page == nil) != (j.op == opLaunch) {
		return nil, fault.New(fault.ProviderUnavailable, "There is no browser yet, or there is one already.")
	}
	var result any
	var err error
	switch j.op {
	case opLaunch:
		var setup Setup
		if json.Unmarshal(j.body, &setup) != nil {
			return nil, malformed()
		}
		if page, err = s.launch(j.ctx, setup); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.page = page
		s.mu.Unlock()
		go s.watch(page)
		return nil, nil
	case opRestore:
		m, decodeErr := browser.DecodeMaterial(j.body)
		clear(j.body)
		if decodeErr != nil {
			return nil, malformed()
		}
		return nil, page.Restore(j.ctx, m)
	case opNavigate:
		var u site.URL
		if json.Unmarshal(j.body, &u) != nil {
			return nil, malformed()
		}
		result, err = page.Navigate(j.ctx, u)
	case opObserve:
		var q observe.Query
		if json.Unmarshal(j.body, &q) != nil {
			return nil, malformed()
		}
		result, err = page.Observe(j.ctx, q)
	case opAct:
		var a act
		if json.Unmarshal(j.body, &a) != nil {
			return nil, malformed()
		}
		result, err = page.Act(j.ctx, a.Action, a.Constraint)
	case opUpload:
		result, err = s.serveUpload(j, page)
	case opPicture:
		result, err = s.servePicture(j, page)
	case opCapture:
		m, err := page.Capture(j.ctx)
		if err != nil {
			return nil, err
		}
		body, err := m.Encode()
		if err != nil {
			return nil, fault.New(fault.OutputInvalid, "The session is too large to keep. Nothing was saved.")
		}
		return body, nil
	case opEvidence:
		result, err = page.Evidence(j.ctx)
	case opInput:
		var in browser.Input
		if json.Unmarshal(j.body, &in) != nil {
			return nil, malformed()
		}
		return nil, page.Input(j.ctx, in)
	}
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(result)
	if err != nil {
		return nil, fault.New(fault.OutputInvalid, "The browser's answer could not be encoded.")
	}
	return body, nil
}

// pictures answers the call, then sends pictures until the call is cancelled
// or the browser has no more.
func (s *server) pictures(j job) {
	page := s.current()
	if page == nil {
		s.reply(j, nil, fault.New(fault.ProviderUnavailable, "There is no browser yet."))
		return
	}
	frames, err := page.Frames(j.ctx)
	s.reply(j, nil, err)
	if err != nil {
		return
	}
	for f := range frames {
		body, err := json.Marshal(f)
		if err != nil || len(body) > pictureMax || j.ctx.Err() != nil {
			continue
		}
		if s.out.send(picture, opFrames, j.id, body) != nil {
			s.cancel(j.id) // nobody listens; let the page end the stream
		}
	}
	s.out.send(ended, opFrames, j.id, nil)
}

// watch ends the connection when the browser has gone, after the calls under
// way have said what became of them.
func (s *server) watch(page browser.Page) {
	select {
	case <-page.Done():
	case <-s.ctx.Done():
		return
	}
	quiet := make(chan struct{})
	s.mu.Lock()
	if len(s.cancels) == 0 {
		close(quiet)
	} else {
		s.quiet = quiet
	}
	s.mu.Unlock()
	select {
	case <-quiet:
	case <-time.After(lastWords):
	}
	s.conn.Close()
}
