package driver

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	protocdp "github.com/chromedp/cdproto/cdp"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

const (
	uploadDir    = "uploads"       // in Home, which is memory where there are namespaces
	maxUploads   = 16              // images that one document may hold
	chooserBound = 3 * time.Second // for the page to ask for a file after the click
)

// uploads are the files that the current document may still read. The browser
// reads a chosen file when the page does, and a form's when it is sent, so they
// stay for as long as the document.
type uploads struct {
	generation int // of the document
	folders    []string
}

// chooser is a request for a file that an upload waits for.
type chooser struct {
	awaited bool
	asked   *page.EventFileChooserOpened
}

// Upload gives the image to a file input of the main document: the element
// itself, or the one that a click on it asks for (UPL-02, UPL-04, UPL-07).
// Errors are those of Act.
func (p *Page) Upload(ctx context.Context, a action.Action, image artifact.Payload) (observe.Document, error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return observe.Document{}, err
	}
	defer leave()
	if a.Kind != action.Attach || !image.Valid() {
		return observe.Document{}, fault.New(fault.ArgumentsInvalid, "The call could not be read. Nothing was done.")
	}
	if err := p.gate(ctx); err != nil {
		return observe.Document{}, p.ended(err)
	}
	t, err := p.find(ctx, a)
	if err != nil {
		return observe.Document{}, p.ended(err)
	}
	if t.world.frame != "" {
		return observe.Document{}, fault.New(fault.ActionNotAllowed, "The element is in a frame. An image is given to the page itself only. Nothing was sent.")
	}
	t.args.Value = string(image.Type)
	number, err := p.receiver(ctx, t)
	if err != nil {
		return observe.Document{}, p.ended(err)
	}
	path, err := p.place(image)
	if err != nil {
		return observe.Document{}, err
	}
	p.mu.Lock()
	p.nav = navigation{}
	p.mu.Unlock()
	var sent bool
	if number != 0 {
		sent, err = p.give(ctx, t, number, path)
	} else {
		sent, err = p.giveWhenAsked(ctx, t, image.Type, path)
	}
	if err != nil && !sent {
		return observe.Document{}, p.ended(err)
	}
	if err != nil {
		return observe.Document{}, unknown(err)
	}
	return p.aftermath(ctx, t)
}

// receiver is the number of the file input that the element is, or 0.
func (p *Page) receiver(ctx context.Context, t aimed) (int, error) {
	bounded, cancel := context.WithTimeout(ctx, inputBound)
	defer cancel()
	var r pagejs.Receiver
	if err := p.in(bounded, t.world, pagejs.ReceiverOf, t.args, &r); err != nil {
		return 0, p.unreadable(err)
	}
	if r.Reason != "" {
		return 0, refusal(r.Reason)
	}
	return r.Number, nil
}

// place writes the image under a name of ours, in a folder of its own.
func (p *Page) place(image artifact.Payload) (path string, _ error) {
	p.mu.Lock()
	generation := p.doc.generation
	p.mu.Unlock()
	if len(p.uploads.folders) == maxUploads {
		return "", fault.New(fault.ActionNotAllowed, "The page holds as many images as it may. Nothing was sent; open the page again.")
	}
	folder := filepath.Join(p.config.Home, uploadDir, ident.Hex(8))
	path = filepath.Join(folder, image.Name())
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = os.WriteFile(path, image.Data.Reveal(), 0o600)
	}
	if err != nil {
		return "", fault.Wrap(fault.ProviderUnavailable, "The browser has no room for the image. Nothing was sent.", errors.Join(err, os.RemoveAll(folder)))
	}
	p.uploads.generation = generation
	p.uploads.folders = append(p.uploads.folders, folder)
	return path, nil
}

// clearUploads removes the files of a document that has gone. The caller is an
// operation.
func (p *Page) clearUploads() {
	p.mu.Lock()
	gone := p.uploads.generation != p.doc.generation
	p.mu.Unlock()
	if !gone || len(p.uploads.folders) == 0 {
		return
	}
	for _, folder := range p.uploads.folders {
		if err := os.RemoveAll(folder); err != nil {
			p.log.Warn("an uploaded image was not removed", "error", err)
		}
	}
	p.uploads = uploads{}
}

// give chooses the file in a file input, as a person does in the dialog.
func (p *Page) give(ctx context.Context, t aimed, number int, path string) (sent bool, _ error) {
	bounded, cancel := context.WithTimeout(ctx, inputBound)
	defer cancel()
	nodes, err := p.describe(bounded, t.world, []int{number})
	if err != nil || nodes[number] == nil {
		return false, p.unreadable(errors.Join(err, errMoved))
	}
	return true, p.chooseFile(bounded, nodes[number].BackendNodeID, path)
}

func (p *Page) chooseFile(ctx context.Context, input protocdp.BackendNodeID, path string) error {
	_, err := cdp.Call(ctx, p.session, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{path}, BackendNodeID: input})
	return err
}

// errNoChooser: the click was sent, and nothing that may get the image asked for one.
var errNoChooser = errors.New("driver: no file input of this document asked for a file")

// giveWhenAsked clicks the element and answers the chooser that this opens, if
// its input belongs to the document that was observed (UPL-09).
func (p *Page) giveWhenAsked(ctx context.Context, t aimed, kind artifact.Type, path string) (sent bool, _ error) {
	bounded, cancel := context.WithTimeout(ctx, inputBound+chooserBound)
	defer cancel()
	if err := p.keepChooser(bounded, true); err != nil {
		return false, p.unreadable(err)
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), inputBound)
		defer cancel()
		if p.keepChooser(after, false) != nil {
			_ = p.conn.Close() // a dialog that stays open is worse
		}
	}()
	p.mu.Lock()
	generation := p.doc.generation
	p.chooser = chooser{awaited: true}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.chooser = chooser{}
	}()
	t.args.Kind = string(action.Click)
	if sent, err := p.click(bounded, t); err != nil {
		return sent, err
	}
	var asked *page.EventFileChooserOpened
	_, err := p.within(bounded, chooserBound, func() bool {
		asked = p.chooser.asked
		return asked != nil || p.doc.generation != generation
	})
	if err != nil {
		return true, err
	}
	if asked == nil || string(asked.FrameID) != p.mainID || asked.BackendNodeID == 0 {
		return true, errNoChooser
	}
	if err := p.mayReceive(bounded, asked.BackendNodeID, kind); err != nil {
		return true, err
	}
	return true, p.chooseFile(bounded, asked.BackendNodeID, path)
}

// keepChooser makes the browser tell of file choosers without a dialog. Those
// that nobody waits for are cancelled at once.
func (p *Page) keepChooser(ctx context.Context, keep bool) error {
	cancel := !keep
	_, err := cdp.Call(ctx, p.session, page.SetInterceptFileChooserDialog, page.SetInterceptFileChooserDialogParams{Enabled: true, Cancel: &cancel})
	return err
}

func (p *Page) onChooser(v page.EventFileChooserOpened) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.chooser.awaited && p.chooser.asked == nil {
		p.chooser.asked = &v
		p.notify()
	}
}

// mayReceive asks the document whether the input is its own and takes the type.
func (p *Page) mayReceive(ctx context.Context, input protocdp.BackendNodeID, kind artifact.Type) error {
	k := p.kitOf(p.main)
	node, err := cdp.Call(ctx, p.session, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: input, ExecutionContextID: k.context, ObjectGroup: objectGroup})
	if err != nil || node.Object == nil {
		return errors.Join(errNoChooser, err)
	}
	defer func() {
		cdp.Send(p.session, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: objectGroup})
	}()
	quoted, err := json.Marshal(kind)
	if err != nil {
		return err
	}
	yes := true
	r, err := cdp.Call(ctx, p.session, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: `function (input, type) { return this.` + string(pagejs.Receives) + `(input, type); }`,
		ObjectID:            k.object, ReturnByValue: &yes, Silent: &yes,
		Arguments: []*runtime.CallArgument{{ObjectID: node.Object.ObjectID}, {Value: quoted}},
	})
	var reason string
	if err != nil || r.ExceptionDetails != nil || r.Result == nil || json.Unmarshal(r.Result.Value, &reason) != nil || reason != "" {
		return errors.Join(errNoChooser, err)
	}
	return nil
}
