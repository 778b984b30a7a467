package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	protocdp "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

var _ browser.Page = (*Page)(nil)

// Page is one Chromium with one page; see browser.Page.
type Page struct {
	config Config
	log    *slog.Logger

	chromium, xvfb *process
	replies        *os.File
	conn           *cdp.Conn
	root           *cdp.Session       // the browser
	session        *cdp.Session       // the page
	atRest         func(witness) bool // witness.rests, or what a test puts in its place
	main           *world             // its main document, whichever that is

	lock     chan struct{} // capacity 1; serialises the operations (SER-01)
	attached chan target.EventAttachedToTarget
	done     chan struct{}
	endErr   error // what cleaning up failed at; set before done is closed
	closing  sync.Once
	inputMu  sync.Mutex // one event of the owner at a time
	creation sync.Mutex // held while a page of our own is being made

	castMu sync.Mutex
	cast   *screencast

	mu       sync.Mutex
	changed  chan struct{}           // closed and replaced whenever something below changes
	mainID   string                  // target id of the page, which is also its main frame's id
	clerkID  string                  // target id of the page that reads storage, while there is one
	clerk    *cdp.Session            // its session
	inner    map[string]*cdp.Session // frames with a process of their own, by frame id
	frames   map[string]bool
	popups   map[string]bool
	notices  []observe.Notice  // since the newest observation
	dialogs  int               // since then
	asked    map[string]string // addresses that popups asked for since, by frame id
	blocked  int               // popups so far
	proof    string            // what prove asks for, until it is answered
	offline  bool              // every document is empty and nothing is sent (restoring)
	doc      document
	nav      navigation
	requests requests
	refresh  bool                   // the newest document came with an order to go elsewhere after a time
	revision string                 // of the newest observation; its handles are in the document
	reading  reading                // ... and what continues it
	view     view                   // ... and what it showed
	cost     pagejs.Cost            // ... and where its time went, for benchmarks
	fence    *constraint.Constraint // confines documents and pings, while an act needs it
	visited  map[string]bool        // origins whose storage may hold something

	chooser chooser // guarded by mu
	uploads uploads // guarded by lock

	draft string // what was last typed into an editor, while it may be there; used under lock only
}

// document is what the main frame shows.
type document struct {
	generation int // counts documents
	url        string
	ready      bool // parsed
	loaded     bool // with everything in it
	proven     bool // ... and unable to change by itself
	kit        kit
	worlds     map[string]*world // of frames, by frame id
	refs       map[int]int       // number of an element -> its number in references
	next       int               // the next number in references
}

// navigation is what happened to the main frame since an operation began.
type navigation struct {
	requested bool // the page asked for one; nothing is sent yet
	pending   bool // a document request is under way
	committed bool
	refused   bool // an address was refused by the origin rule
	hop       bool // ... and it was a redirect, so something was sent before
	failed    bool // the site could not be reached
	download  bool // the answer was a file
	empty     bool // the answer had no page
	fenced    bool // an address was outside the grant of the act
	kept      bool // the page asked not to be left, and was kept
}

// end records why a navigation came to nothing. Once the operation has its
// document, what that document tries next says nothing about the operation.
func (n *navigation) end(why func(*navigation)) {
	n.requested, n.pending = false, false
	if !n.committed {
		why(n)
	}
}

// enter begins an operation; the caller must run the returned function.
func (p *Page) enter(ctx context.Context) (func(), error) {
	select {
	case p.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, fault.Wrap(fault.ProviderUnavailable, "The browser was busy until the call ended. Nothing was sent.", ctx.Err()).Retry()
	}
	if p.conn.Err() != nil {
		<-p.lock
		return nil, fault.Wrap(fault.ProviderUnavailable, "The browser has ended. Nothing was sent.", p.conn.Err())
	}
	p.clearUploads()
	return func() { <-p.lock }, nil
}

// notify needs p.mu.
func (p *Page) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// until waits until ok, which is called with p.mu held, is true. It returns
// the context's error or that of a browser that ended.
func (p *Page) until(ctx context.Context, ok func() bool) error {
	for {
		p.mu.Lock()
		yes, changed := ok(), p.changed
		p.mu.Unlock()
		if yes {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.session.Done():
			return cdp.ErrDetached
		}
	}
}

// within is until with a time limit; it reports whether ok came true.
func (p *Page) within(ctx context.Context, limit time.Duration, ok func() bool) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := p.until(bounded, ok)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// errMoved: the document was replaced while something was asked of it.
var errMoved = errors.New("driver: the document was replaced")

// ask calls a function of the kit in the main document and decodes its answer.
func (p *Page) ask(ctx context.Context, fn pagejs.Function, argument, answer any) error {
	p.mu.Lock()
	generation, k := p.doc.generation, p.doc.kit
	p.mu.Unlock()
	err := func() (err error) {
		if k.object == "" {
			if k, err = install(ctx, p.session, p.mainID); err != nil {
				return err
			}
			p.mu.Lock()
			if p.doc.generation == generation {
				p.doc.kit = k
			}
			p.mu.Unlock()
		}
		return invoke(ctx, p.session, k.object, fn, argument, answer)
	}()
	if err == nil || ctx.Err() != nil || p.conn.Err() != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doc.generation != generation {
		return errMoved
	}
	p.doc.kit = kit{} // the world may have gone before the event that says so
	return err
}

// install makes the isolated world of a frame's document and puts the kit in it.
func install(ctx context.Context, s *cdp.Session, frame string) (kit, error) {
	world, err := cdp.Call(ctx, s, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{
		FrameID: protocdp.FrameID(frame), WorldName: "chaperone",
	})
	if err != nil {
		return kit{}, err
	}
	made, err := cdp.Call(ctx, s, runtime.Evaluate, runtime.EvaluateParams{
		Expression: pagejs.Source(), ContextID: world.ExecutionContextID,
	})
	if err != nil {
		return kit{}, err
	}
	if made.ExceptionDetails != nil || made.Result == nil || made.Result.ObjectID == "" {
		return kit{}, fmt.Errorf("driver: the kit did not load: %s", exception(made.ExceptionDetails))
	}
	return kit{made.Result.ObjectID, world.ExecutionContextID}, nil
}

// jsonText is a value as a JSON string of JSON text.
func jsonText(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(string(text))
}

func invoke(ctx context.Context, s *cdp.Session, kit runtime.RemoteObjectID, fn pagejs.Function, argument, answer any) error {
	name, err := json.Marshal(fn)
	if err != nil {
		return err
	}
	quoted, err := jsonText(argument)
	if err != nil {
		return err
	}
	yes := true
	r, err := cdp.Call(ctx, s, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: pagejs.Invoke, ObjectID: kit, AwaitPromise: &yes, ReturnByValue: &yes, Silent: &yes,
		Arguments: []*runtime.CallArgument{{Value: name}, {Value: quoted}},
	})
	if err != nil {
		return err
	}
	if r.ExceptionDetails != nil || r.Result == nil {
		return fmt.Errorf("driver: %s failed in the page: %s", fn, exception(r.ExceptionDetails))
	}
	var out string
	if err := json.Unmarshal(r.Result.Value, &out); err != nil {
		return fmt.Errorf("driver: %s: %w", fn, err)
	}
	return json.Unmarshal([]byte(out), answer)
}

func exception(d *runtime.ExceptionDetails) string {
	if d == nil || d.Exception == nil {
		return "no details"
	}
	return d.Exception.Description
}
