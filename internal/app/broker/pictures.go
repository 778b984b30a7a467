package broker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// pictureTime bounds how long a question waits for its picture.
const pictureTime = 2 * time.Second

// Bounds of what is kept; the oldest picture makes room.
const (
	maxPictures     = 64
	maxPictureBytes = 8 << 20
)

// album keeps the pictures of open questions, in memory only. It is never
// asked for anything that an agent gets (VIEW-02).
type album struct {
	mu   sync.Mutex
	kept []pictured // oldest first
}

type pictured struct {
	caller.Scope
	approval string
	picture  browser.Picture
}

func (a *album) keep(p pictured) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = append(a.kept, p)
	size := 0
	for i := len(a.kept) - 1; i >= 0; i-- {
		size += len(a.kept[i].picture.JPEG)
		if size > maxPictureBytes || len(a.kept)-i > maxPictures {
			a.kept = slices.Delete(a.kept, 0, i+1)
			return
		}
	}
}

func (a *album) find(scope caller.Scope, id string) (browser.Picture, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.kept {
		if p.Scope == scope && p.approval == id {
			return p.picture, true
		}
	}
	return browser.Picture{}, false
}

// drop forgets the pictures for which over is true.
func (a *album) drop(over func(scope caller.Scope, approval string) bool) {
	a.mu.Lock()
	all := slices.Clone(a.kept)
	a.mu.Unlock()
	for _, p := range all {
		if !over(p.Scope, p.approval) {
			continue
		}
		a.mu.Lock()
		a.kept = slices.DeleteFunc(a.kept, func(k pictured) bool { return k.Scope == p.Scope && k.approval == p.approval })
		a.mu.Unlock()
	}
}

// illustrate asks for the surroundings of the element that a new question is
// about. A question without a picture is still a question: every failure is
// silent, and another call under way is not waited for longer than that.
func (b *Broker) illustrate(ctx context.Context, c caller.Caller, id string, r action.Request) {
	ctx, cancel := context.WithTimeout(ctx, pictureTime)
	defer cancel()
	s := b.session(c)
	if s.lock(ctx) != nil {
		return
	}
	defer s.unlock()
	held, err := lease.Hold(s.lease.Ref, s.lease.Sequence, s.lease.ExpiresAt, b.Now())
	if err != nil {
		return
	}
	picture, err := b.Service.Picture(ctx, held, r.Action.ExpectedRevision, r.Action.Ref)
	if err != nil || !picture.Valid() {
		b.Log.Debug("a question has no picture", "approval", id, "code", fault.CodeOf(err))
		return
	}
	b.pictures.keep(pictured{c.Scope, id, picture})
}

// Picture is what the page showed around the element of an open question. Only
// its owner sees it. NotFound when there is none, or the question is closed.
func (b *Broker) Picture(ctx context.Context, by caller.Caller, id string) (browser.Picture, error) {
	if by.Role != caller.Owner {
		return browser.Picture{}, fault.New(fault.Forbidden, "Only the owner's devices may do this.")
	}
	if p, ok := b.pictures.find(by.Scope, id); ok && !b.closed(ctx, by.Scope, id) {
		return p, nil
	}
	return browser.Picture{}, fault.New(fault.NotFound, "There is no picture of this.")
}

// closed reports whether a question needs no picture any more.
func (b *Broker) closed(ctx context.Context, scope caller.Scope, id string) bool {
	var a approval.Approval
	err := b.Store.View(ctx, scope, func(tx store.Tx) (err error) { a, err = tx.Approval(id); return err })
	a = a.At(b.Now())
	return err != nil || a.Status != approval.Pending && a.Status != approval.Approved
}
