package broker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/rules/projection"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
)

// session is what the broker remembers of an agent session while it runs: the
// lease, and the newest observation. Losing it costs a fresh observation.
type session struct {
	caller caller.Caller
	turn   chan struct{} // holds one token: the right to dispatch
	begun  atomic.Pointer[run.Session]

	lease   browser.Lease // zero when there is none; guarded by turn
	attempt int           // of the next lease; guarded by turn

	mu    sync.Mutex
	last  observe.Raw      // zero when nothing may be acted on
	shown projection.Shown // the newest answer; zero when the page is not the one it was of
	stop  func()           // cancels the call that is being dispatched; nil when there is none
}

func (b *Broker) session(c caller.Caller) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sessions[c.Session]
	if s == nil || s.caller.Scope != c.Scope {
		s = &session{caller: c, turn: make(chan struct{}, 1), attempt: 1}
		s.turn <- struct{}{}
		b.sessions[c.Session] = s
	}
	return s
}

func (s *session) lock(ctx context.Context) error {
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *session) unlock() { s.turn <- struct{}{} }

// begin makes the call that holds the turn one that interrupt can cancel.
func (s *session) begin(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	set := func(stop func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop = stop
	}
	set(cancel)
	return ctx, func() { set(nil); cancel() }
}

// interrupt cancels the call that is being dispatched, if any. An act among
// them is recorded as uncertain, like any other that was cut short (REL-01).
func (s *session) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
	}
}

// fresh refuses what the newest observation shows to be wrong, before anything
// is sent: an act on another revision (CAP-06) or on a region (FOC-07), and an
// offset into a region that is not the focused one (FOC-08). A read of another
// revision still reaches the browser, which knows.
func (s *session) fresh(r action.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := r.Query.Region; r.Tool == action.Observe && q != nil && q.TextOffset > 0 && q.Revision == s.last.Revision() && s.region(q.Ref) {
		return fault.New(fault.FocusRequired, "A text_offset continues a focused read. Nothing was read; read the region without text_offset first, then copy next_text.")
	}
	if !r.Tool.Writes() {
		return nil
	}
	if s.last.Revision() != r.Action.ExpectedRevision {
		return fault.New(fault.PageChanged, "That revision is not the newest observation. Nothing was sent; observe and use the newest references.")
	}
	if s.region(r.Action.Ref) {
		return fault.New(fault.RegionNotActionable, "That reference is a region's, which is for reading. Nothing was sent; act with the ref of an element.")
	}
	if _, _, ok := s.last.Find(r.Action.Ref); !ok {
		return fault.New(fault.ElementNotFound, "The newest observation has no element with that reference. Nothing was sent.")
	}
	return nil
}

// region reports whether the newest observation has a region with the
// reference. The caller holds mu.
func (s *session) region(ref string) bool {
	return slices.ContainsFunc(s.last.Document().Regions, func(r observe.Region) bool { return r.Ref == ref })
}

// focused adds the cursor of the captured text to a read that goes on in the
// focused region, so that the browser can tell whether that text is unchanged
// (FOC-03).
func (s *session) focused(r *action.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, focus := r.Query.Region, s.last.Document().Focus
	if q == nil || q.TextCursor != "" || focus == nil || q.Ref != focus.RegionRef {
		return
	}
	with := *q
	with.TextCursor = focus.TextCursor
	r.Query.Region = &with
}

// describe is what the owner is shown of an act. What cannot be described is
// not asked about.
func (s *session) describe(r action.Request, image artifact.Image) (approval.View, string, error) {
	if r.Tool == action.Navigate {
		view, summary := approval.DescribeOpen(r.URL)
		return view, summary, nil
	}
	if err := s.fresh(r); err != nil {
		return approval.View{}, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, facts, _ := s.last.Find(r.Action.Ref)
	if r.Action.Kind == action.Type && facts.FieldKind.Credential() {
		return approval.View{}, "", fault.New(fault.ActionNotAllowed, "Agents may not type into password or one-time-code fields. Nothing was sent; the owner signs in.")
	}
	if r.Tool == action.Upload {
		view, summary := approval.DescribeUpload(r.Action, image, s.last)
		return view, summary, nil
	}
	view, summary := approval.Describe(r.Action, s.last)
	return view, summary, nil
}

// saw validates and keeps a new observation.
func (s *session) saw(d observe.Document, origins site.Origins) error {
	raw, err := observe.Accept(d, origins)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = raw // the zero Raw when refused: nothing may be acted on
	return err
}

// seen is what the agent saw of the newest observation.
func (s *session) seen() projection.Shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// show projects the newest observation, and remembers what of it is shown.
func (s *session) show(o projection.Options) (projection.View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	view, shown, err := projection.Project(s.last, o)
	s.shown = shown
	return view, err
}

// interrupted says what a sign-in challenge means to the call that met it. It
// proves nothing about an act that was sent (CHAL-01), and versions before
// 1.7.0 have no other word for it.
func (s *session) interrupted(r action.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.last.Document().Interruption == "":
		return nil
	case r.Tool.Writes():
		return challenged(nil)
	case !r.Version.AtLeast(contract.V170):
		return fault.New(fault.NeedsUser, "The website asks for its owner. Nothing was sent; ask the owner to sign in.")
	}
	return nil
}

// done notes that the service carried out an operation of the lease.
func (s *session) done(r action.Request) {
	if r.Tool.Writes() {
		s.lease.Sequence++
	}
}

// keeps reports whether page and lease outlive a failure with the code
// (section 2.2 of the requirements); after any other the lease is retired.
func keeps(code fault.Code) bool {
	switch code {
	case fault.PageChanged, fault.ElementNotFound, fault.ActionNotAllowed, fault.GrantNotApplicable, fault.RegionNotActionable, fault.FocusRequired, fault.URLDisallowed,
		fault.SiteUnreachable, fault.NavigationCancelled, fault.OutputInvalid, fault.NeedsUser, fault.AuthenticationRequired:
		return true
	}
	return false
}

func (s *session) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.shown = observe.Raw{}, projection.Shown{}
}

// dropRows takes the rows out of the newest observation: a condition read
// them, and the agent did not ask for them.
func (s *session) dropRows() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = s.last.WithoutRows()
}

// hold returns the proof of the session's lease, attaching or acquiring one
// when needed (LEASE-04, LEASE-06). A lease that outlasts the call, which takes
// at most d, is reused.
func (b *Broker) hold(ctx context.Context, s *session, bound binding, d time.Duration) (lease.Held, error) {
	now := b.Now()
	if s.lease.Sequence == 0 || !now.Add(d).Before(s.lease.ExpiresAt) {
		if s.lease.Ref != "" && !now.Add(d).Before(s.lease.ExpiresAt) {
			if err := b.release(ctx, s); err != nil {
				return lease.Held{}, err
			}
			s.forget()
		}
		acquired, err := b.acquire(ctx, s, bound)
		if err != nil {
			return lease.Held{}, err
		}
		if acquired.Ref != s.lease.Ref {
			s.forget()
		}
		s.lease = acquired
	}
	return lease.Hold(s.lease.Ref, s.lease.Sequence, s.lease.ExpiresAt, now)
}

func (b *Broker) acquire(ctx context.Context, s *session, bound binding) (browser.Lease, error) {
	key := lease.Key{
		Scope: s.caller.Scope, ProfileID: bound.session.ProfileID, ProviderRef: bound.profile.ProviderRef,
		RunID: bound.session.ID, Attempt: s.attempt, Origins: bound.session.Origins,
		Specified: bound.session.Contract != contract.Newest,
	}
	headed := bound.session.Headed
	if !key.Ephemeral() {
		headed = !b.Headless
	}
	return b.Service.Acquire(ctx, key, headed, b.Now().Add(lease.MaxStep))
}

// release closes the session's lease, which seals a healthy profile.
func (b *Broker) release(ctx context.Context, s *session) error {
	ref := s.lease.Ref
	s.lease = browser.Lease{}
	s.attempt++
	if ref == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolTime)
	defer cancel()
	return b.Service.CloseLease(ctx, ref)
}

// renewBefore is how close to expiry a lease is renewed (RENEW-02).
const renewBefore = 5 * time.Minute
