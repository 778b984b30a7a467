package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/browser"
	protocdp "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/target"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
)

// launchBound is how long a browser may take to show its first blank page.
const launchBound = 60 * time.Second

// Launch starts a browser with one blank page. The page owns every process it
// started; Close ends them. Launch returns fault.ProviderUnavailable when a
// program is missing, the display or the browser does not start, or the
// renderer's sandbox is not really on.
func Launch(ctx context.Context, c Config) (*Page, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, launchBound)
	defer cancel()
	p := &Page{
		config: c, proof: "https://" + ident.Hex(16) + ".invalid/", log: c.Log, atRest: witness.rests, lock: make(chan struct{}, 1), changed: make(chan struct{}), done: make(chan struct{}),
		attached: make(chan target.EventAttachedToTarget, 1), inner: map[string]*cdp.Session{}, frames: map[string]bool{}, popups: map[string]bool{}, asked: map[string]string{}, visited: map[string]bool{},
	}
	if err := p.start(ctx); err != nil {
		err = errors.Join(err, p.cleanUp())
		return nil, fault.Wrap(fault.ProviderUnavailable, "The browser did not start safely. Run chaperone doctor.", err)
	}
	go p.reap()
	return p, nil
}

func (p *Page) start(ctx context.Context) error {
	c := p.config
	if err := c.prepare(p.proof); err != nil {
		return err
	}
	display := ""
	if c.Headed {
		var err error
		if p.xvfb, display, err = c.startDisplay(ctx); err != nil {
			return err
		}
	}
	if err := p.startBrowser(display); err != nil {
		return err
	}
	if err := p.connect(ctx); err != nil {
		return fmt.Errorf("%w; the browser's last words: %s", err, p.chromium.tail)
	}
	return verifySandbox(p.chromium.cmd.Process.Pid)
}

func (p *Page) startBrowser(display string) error {
	switches, err := p.config.switches()
	if err != nil {
		return err
	}
	commandR, commandW, err := os.Pipe()
	if err != nil {
		return err
	}
	replyR, replyW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, commandR.Close(), commandW.Close())
	}
	cmd := exec.Command(p.config.Chromium, switches...)
	cmd.ExtraFiles = []*os.File{commandR, replyW} // become 3 and 4
	cmd.Env = p.config.environment(display)
	cmd.Dir = p.config.Home
	p.chromium, err = start(cmd)
	commandR.Close()
	replyW.Close()
	if err != nil {
		return errors.Join(err, commandW.Close(), replyR.Close())
	}
	p.replies = replyR
	p.conn = cdp.New(replyR, commandW)
	return nil
}

// connect puts the request policy in force before it attaches to the page, so
// that no request is ever sent without it.
func (p *Page) connect(ctx context.Context) error {
	p.root = p.conn.Root()
	go p.root.Serve(p.onBrowserEvent)
	yes := true
	if _, err := cdp.Call(ctx, p.root, fetch.Enable, fetch.EnableParams{
		Patterns: []*fetch.RequestPattern{
			{URLPattern: "*"},
			{URLPattern: "*", ResourceType: network.ResourceTypeDocument, RequestStage: fetch.RequestStageResponse},
		},
		HandleAuthRequests: &yes,
	}); err != nil {
		return err
	}
	if _, err := cdp.Call(ctx, p.root, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorDeny, EventsEnabled: &yes,
	}); err != nil {
		return err
	}
	if _, err := cdp.Call(ctx, p.root, target.SetAutoAttach, target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &yes,
		Filter: target.Filter{{Type: "page"}},
	}); err != nil {
		return err
	}
	select {
	case first := <-p.attached:
		p.session = p.conn.Session(string(first.SessionID))
		p.main = &world{session: p.session}
	case <-p.conn.Done():
		return p.conn.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
	go p.session.Serve(p.onPageEvent)
	return p.setUp(ctx)
}

// setUp sends everything at once and then waits for all of it.
func (p *Page) setUp(ctx context.Context) error {
	yes, zero := true, int64(0)
	s := p.session
	waits := []func() error{
		wait(ctx, cdp.Send(s, page.Enable, page.EnableParams{})),
		wait(ctx, cdp.Send(s, inspector.Enable, protocdp.Empty{})),
		wait(ctx, cdp.Send(s, target.SetAutoAttach, innerFrames())),
		wait(ctx, cdp.Send(s, network.Enable, network.EnableParams{MaxTotalBufferSize: &zero, MaxResourceBufferSize: &zero, MaxPostDataSize: &zero})),
		wait(ctx, cdp.Send(s, performance.Enable, performance.EnableParams{})),
		wait(ctx, cdp.Send(s, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})),
		wait(ctx, cdp.Send(s, page.SetInterceptFileChooserDialog, page.SetInterceptFileChooserDialogParams{Enabled: true, Cancel: &yes})),
	}
	for _, w := range waits {
		if err := w(); err != nil {
			return err
		}
	}
	var one bool
	if err := p.ask(ctx, "ready", struct{}{}, &one); err != nil { // the renderer exists and the kit works
		return err
	}
	return p.prove(ctx)
}

func wait[R any](ctx context.Context, w cdp.Wait[R]) func() error {
	return func() error {
		_, err := w(ctx)
		return err
	}
}

// reap waits for the end of the browser, whatever its cause, and leaves
// nothing of it behind.
func (p *Page) reap() {
	<-p.conn.Done()
	if p.endErr = p.cleanUp(); p.endErr != nil {
		p.log.Error("browser was not cleaned up", "error", p.endErr)
	}
	close(p.done)
}

// cleanUp ends every process and removes what was made in Home.
func (p *Page) cleanUp() error {
	var errs []error
	if p.conn != nil {
		_ = p.conn.Close() // the pipe may be broken already, which is the same end
	}
	for _, proc := range []*process{p.chromium, p.xvfb} {
		if proc != nil {
			errs = append(errs, proc.kill())
		}
	}
	if p.replies != nil {
		_ = p.replies.Close() // read only; nothing can be lost
	}
	for _, name := range made {
		errs = append(errs, removeSoon(filepath.Join(p.config.Home, name)))
	}
	return errors.Join(errs...)
}

// removeSoon retries for two seconds: a crash handler outside the process
// group may write a last file while the tree is removed.
func removeSoon(path string) error {
	deadline := time.Now().Add(2 * time.Second)
	for {
		err := os.RemoveAll(path)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-time.After(20 * time.Millisecond)
	}
}

// Done is closed when the browser and all its processes have gone.
func (p *Page) Done() <-chan struct{} { return p.done }

// Close ends the browser and waits until nothing of it is left; an error says
// that something is.
func (p *Page) Close() error {
	p.closing.Do(func() { _ = p.conn.Close() })
	<-p.done
	return p.endErr
}
