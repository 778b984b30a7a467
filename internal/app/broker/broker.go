// Package broker is the one way from a tool call to an effect (design section
// 2). Call prepares, decides, authorizes, permits, holds, marks the effect,
// acts, observes, projects and records, in that order, for every tool alike; a
// tool cannot skip a step (POL-01, POL-02, SCRL-01, TOOL-06, TOOL-10, GATE-05,
// GATE-07, REL-01, REL-02, REC-01, REC-02, CHAL-01, COND-02, COND-03, COND-06,
// COND-07, EVID-04, FOC-07 to FOC-09, OPD-01 to OPD-04, LEASE-03 to LEASE-06, UPL-05,
// UPL-06, UPL-09, UPL-10, VIEW-02,
// RENEW-01, RENEW-02, ACC-02, ACC-07).
package broker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/notify"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/condition"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/policy"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/projection"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// Config of a Broker. Every member is needed unless it says otherwise.
type Config struct {
	Store        store.Store
	Service      browser.Service
	Hub          *notify.Hub
	ApprovalWait time.Duration          // how long a call waits for the owner before it answers approval_pending
	ApprovalURL  func(id string) string // where the owner decides
	Headless     bool                   // leases of profiles without a display
	Images       Images                 // nil: browser.upload is not there (UPL-10)
	ApproveAll   bool                   // development mode only: the owner's answer is always yes
	Budget       int                    // bytes of one result; 0 means what the tool's version says
	Now          func() time.Time       // nil means time.Now
	Log          *slog.Logger
}

// toolTime bounds one dispatch with its settling and observation (section 2.2).
const toolTime = 30 * time.Second

// recordTime bounds the write of an outcome after the caller may have gone.
const recordTime = 5 * time.Second

// Broker carries out tool calls. It is safe for concurrent use; the calls of
// one session are dispatched one after another.
type Broker struct {
	Config
	mu       sync.Mutex
	sessions map[string]*session
	traces   ring
	pictures album
}

// New checks the configuration.
func New(c Config) (*Broker, error) {
	if c.Store == nil || c.Service == nil || c.Hub == nil || c.ApprovalURL == nil || c.Log == nil || c.ApprovalWait < 0 || c.Budget < 0 {
		return nil, errors.New("broker: the configuration is incomplete")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Broker{Config: c, sessions: map[string]*session{}}, nil
}

// Pending says that a call needs the owner.
type Pending struct {
	ApprovalID string
	Address    string // of the owner's console
	Summary    string // in our own words
	ExpiresAt  time.Time
}

// PendingError is the answer to a call whose approval has not been decided in
// time. Repeating the identical call joins the same approval.
type PendingError struct {
	Pending
	fault *fault.Error
}

func (e *PendingError) Error() string { return e.fault.Error() }
func (e *PendingError) Unwrap() error { return e.fault }

// Contract is the set of tool versions that the caller's session began with
// (TOOL-10). Errors are those of Call.
func (b *Broker) Contract(ctx context.Context, c caller.Caller) (contract.Set, error) {
	if c.Role != caller.Agent || c.Session == "" {
		return "", fault.New(fault.Forbidden, "Only an agent session can call tools. Nothing was done.")
	}
	var set contract.Set
	err := b.Store.View(ctx, c.Scope, func(tx store.Tx) error {
		s, err := tx.Session(c.Session)
		set = s.Contract
		return err
	})
	return set, public(err)
}

// Call carries out one tool call of the caller's session. onWait, which may be
// nil, is told once when the call starts to wait for the owner. Errors are
// fault.Errors of the tool family, or a *PendingError.
func (b *Broker) Call(ctx context.Context, c caller.Caller, tool action.Tool, arguments json.RawMessage, onWait func(Pending)) (projection.View, error) {
	t := begin(tool)
	v, err := b.call(ctx, t, c, tool, arguments, onWait)
	b.ended(c.Scope, t, err)
	return v, err
}

func (b *Broker) call(ctx context.Context, t *trace, c caller.Caller, tool action.Tool, arguments json.RawMessage, onWait func(Pending)) (projection.View, error) {
	done := t.start(PhasePrepare, Orchestrator)
	begun, err := b.begun(ctx, c)
	if err != nil {
		return projection.View{}, done(err)
	}
	request, err := action.PrepareFor(begun.Contract, tool, arguments)
	var image artifact.Image
	if err == nil && request.Tool == action.Upload {
		image, err = b.image(ctx, c, request.Image)
		request = request.Bound(image.SHA256)
	}
	if done(err) != nil {
		return projection.View{}, err
	}
	decision := policy.Decide(request, begun.Origins)
	if decision.Verdict == policy.Allow {
		return b.dispatch(ctx, t, c, request, decision)
	}
	bound, err := b.binding(ctx, c)
	if err != nil {
		return projection.View{}, err
	}
	switch decision.Verdict {
	case policy.Ask:
		done := t.start(PhaseAwait, Orchestrator)
		if err := done(b.await(ctx, c, bound, request, image, onWait)); err != nil {
			return projection.View{}, err
		}
	default:
		b.denied(ctx, c, request, decision.Refusal)
		return projection.View{}, decision.Refusal
	}
	return b.dispatch(ctx, t, c, request, decision)
}

// begun is what a session began with and keeps: its tools and its origins. It
// is read once; whether the session may still act is for dispatch to ask.
func (b *Broker) begun(ctx context.Context, c caller.Caller) (run.Session, error) {
	if c.Role != caller.Agent || c.Session == "" {
		return run.Session{}, fault.New(fault.Forbidden, "Only an agent session can call tools. Nothing was done.")
	}
	b.mu.Lock()
	s := b.sessions[c.Session]
	b.mu.Unlock()
	if s != nil && s.caller.Scope == c.Scope {
		if begun := s.begun.Load(); begun != nil {
			return *begun, nil
		}
	}
	bound, err := b.binding(ctx, c)
	return bound.session, err
}

// binding is what a session stands for at this moment.
type binding struct {
	session run.Session
	profile profile.Profile // zero for an ephemeral browser
}

// binding reads the caller's session and profile and refuses what may not be
// used now (CAP-01, TOOL-07, CER-05).
func (b *Broker) binding(ctx context.Context, c caller.Caller) (binding, error) {
	var bound binding
	if c.Role != caller.Agent || c.Session == "" {
		return bound, fault.New(fault.Forbidden, "Only an agent session can call tools. Nothing was done.")
	}
	err := b.Store.View(ctx, c.Scope, func(tx store.Tx) (err error) {
		bound, err = b.read(tx, c)
		return err
	})
	return bound, public(err)
}

func (b *Broker) read(tx store.Tx, c caller.Caller) (binding, error) {
	var bound binding
	var err error
	if bound.session, err = tx.Session(c.Session); err != nil {
		return bound, err
	}
	if !bound.session.Live() {
		return bound, fault.New(fault.ProfileUnavailable, "This agent session has ended. Nothing was done; the owner can start another.")
	}
	if bound.session.ProfileID == "" {
		return bound, nil
	}
	if bound.profile, err = tx.Profile(bound.session.ProfileID); err != nil {
		return bound, err
	}
	latest, err := tx.LatestCeremony(bound.session.ProfileID)
	if err != nil && !errors.Is(err, store.ErrAbsent) {
		return bound, err
	}
	if err == nil && latest.Open(b.Now()) {
		return bound, fault.New(fault.ProfileUnavailable, "The owner is signing in to this profile. Nothing was done; try again when that is finished.").Retry()
	}
	switch bound.profile.Status {
	case profile.Ready:
		return bound, nil
	case profile.AuthenticationRequired:
		return bound, fault.New(fault.AuthenticationRequired, "The owner has not signed in to this profile yet. Nothing was done; ask the owner to sign in.")
	case profile.NeedsUser:
		return bound, fault.New(fault.NeedsUser, "The website asks for its owner. Nothing was done; ask the owner to sign in again.")
	}
	return bound, unavailable()
}

// dispatch spends the authority, marks the effect, and carries the call out.
func (b *Broker) dispatch(ctx context.Context, t *trace, c caller.Caller, r action.Request, d policy.Decision) (projection.View, error) {
	s := b.session(c)
	if err := s.lock(ctx); err != nil {
		return projection.View{}, fault.Wrap(fault.ProviderUnavailable, "The call was cancelled before anything was sent.", err)
	}
	defer s.unlock()
	ctx, end := s.begin(ctx)
	defer end()
	if err := s.fresh(r); err != nil {
		return projection.View{}, err
	}
	s.focused(&r)
	bound, err := b.binding(ctx, c)
	if err != nil {
		return projection.View{}, err
	}
	s.begun.Store(&bound.session)
	image, err := b.payload(ctx, c, r)
	if err != nil {
		return projection.View{}, err
	}
	defer image.Data.Wipe()
	done := t.start(PhaseAcquire, Isolated)
	held, err := b.hold(ctx, s, bound, timeOf(r.Tool))
	if done(err) != nil {
		return projection.View{}, err
	}
	done = t.start(PhasePermit, Database)
	invocation, permit, err := b.permit(ctx, c, r, d)
	if done(err) != nil {
		return projection.View{}, err
	}
	doing, cancel := context.WithTimeout(ctx, timeOf(r.Tool))
	defer cancel()
	seen := s.seen()
	done = t.start(PhaseDispatch, Isolated)
	began := time.Now()
	document, err := b.send(doing, held, permit, r, image)
	if err == nil {
		err = s.saw(document, bound.session.Origins)
	}
	if done(err) != nil {
		return projection.View{}, b.failed(ctx, c, s, r, invocation, err)
	}
	s.done(r)
	var result *condition.Result
	if err = s.interrupted(r); err == nil {
		result, err = b.watch(doing, t, s, bound, r, began)
	}
	if err == nil {
		err = s.interrupted(r) // a condition looks again
	}
	if err != nil {
		return projection.View{}, b.failed(ctx, c, s, r, invocation, err)
	}
	invocation.Outcome = run.Succeeded
	done = t.start(PhaseRecord, Database)
	if err := done(b.record(ctx, c, invocation, audit.CallCompleted)); err != nil {
		if r.Tool.Writes() {
			return projection.View{}, fault.Wrap(fault.OutcomeUnknown, "The action was sent, but its outcome could not be recorded. It is not repeated; observe to see what happened.", err)
		}
		return projection.View{}, err
	}
	b.heed(ctx, c, s, nil)
	done = t.start(PhaseProject, Orchestrator)
	view, err := s.show(projection.Options{
		Version: r.Version, Budget: b.Budget, Query: r.Query, Element: r.Offsets.Element, Text: r.Offsets.Text,
		Since: r.Since, Seen: seen, Condition: result,
	})
	return view, done(err)
}

// permit consumes what authorizes the call and records the intent, in one
// durable transaction, before anything can leave (POL-02, GATE-07). Reading
// the page as it stands sends nothing, so that is recorded once, afterwards.
func (b *Broker) permit(ctx context.Context, c caller.Caller, r action.Request, d policy.Decision) (run.Invocation, grant.Permit, error) {
	now := b.Now()
	invocation := newInvocation(c, r, now)
	var permit grant.Permit
	if r.Tool == action.Observe {
		permit, err := grant.FromPolicy(d, r)
		return invocation, permit, err
	}
	err := b.Store.Tx(ctx, c.Scope, func(tx store.Tx) error {
		bound, err := b.read(tx, c)
		if err != nil {
			return err
		}
		if d.Verdict == policy.Allow {
			permit, err = grant.FromPolicy(d, r)
		} else {
			permit, err = spend(tx, bound, r, now)
		}
		if err != nil {
			return err
		}
		if permit.Source() == grant.ByApproval {
			invocation.ApprovalID = permit.Ref()
		}
		if bound.profile.ID != "" {
			if err := tx.UpdateProfile(bound.profile.Used(now), bound.profile.Generation); err != nil {
				return err
			}
		}
		if err := tx.InsertInvocation(invocation); err != nil {
			return err
		}
		_, err = tx.Append(entry(c, audit.CallAuthorized, invocation, string(permit.Source()), now))
		return err
	})
	return invocation, permit, public(err)
}

// spend uses the open approval of the call.
func spend(tx store.Tx, bound binding, r action.Request, now time.Time) (grant.Permit, error) {
	open, err := tx.OpenApproval(bound.session.ID, r.Digest)
	if errors.Is(err, store.ErrAbsent) {
		return grant.Permit{}, fault.New(fault.ApprovalExpired, "The approval is no longer there. Nothing was sent; observe and ask again.")
	}
	if err != nil {
		return grant.Permit{}, err
	}
	permit, used, err := grant.FromApproval(open, bound.session.ID, bound.profile.Generation, r, now)
	if err != nil {
		return grant.Permit{}, err
	}
	return permit, tx.UpdateApproval(used, open.Status)
}

// failed records a call that did not succeed and decides what is known of it.
// It returns the error to show.
func (b *Broker) failed(ctx context.Context, c caller.Caller, s *session, r action.Request, i run.Invocation, cause error) error {
	shown, keep := fault.Public(cause), keeps(fault.CodeOf(cause))
	if l, ok := errors.AsType[*lostError](cause); ok {
		keep = l.keep
	}
	kind := audit.CallFailed
	i.Outcome = run.Failed
	if r.Tool.Writes() && possiblySent(shown.Code) {
		kind, i.Outcome = audit.CallUncertain, run.Uncertain
		if _, told := errors.AsType[*lostError](cause); !told && !said(shown.Code) {
			shown = fault.New(fault.OutcomeUnknown, "The action may have been sent, and what happened is not known. It is not repeated; open the page again to see.")
		}
	}
	b.Log.Warn("call failed", "session", c.Session, "tool", r.Tool, "code", shown.Code)
	i.Code = string(shown.Code)
	s.lease.Sequence = 0 // learnt again by attaching
	if !keep {
		s.forget()
		if err := b.release(ctx, s); err != nil {
			b.Log.Warn("lease not closed", "session", c.Session, "code", fault.CodeOf(err))
		}
	}
	if err := b.record(ctx, c, i, kind); err != nil {
		b.Log.Error("outcome not recorded", "session", c.Session, "invocation", i.ID, "cause", err)
	}
	b.heed(ctx, c, s, cause)
	return shown
}

// possiblySent reports whether an act that failed with the code may have
// reached the site. The codes that prove it was not are a closed list (section
// 2.2 of the requirements); everything else is uncertain.
func possiblySent(code fault.Code) bool {
	switch code {
	case fault.NeedsUser, fault.AuthenticationRequired, fault.PageChanged, fault.ElementNotFound,
		fault.ActionNotAllowed, fault.GrantNotApplicable, fault.RegionNotActionable, fault.FocusRequired, fault.ProfileUnavailable, fault.ProviderUnavailable:
		return false
	}
	return true
}

// said reports whether the code itself tells that the input was sent and the
// page kept: the input led off the origins, or the page asked not to be left.
func said(code fault.Code) bool {
	return code == fault.URLDisallowed || code == fault.NavigationCancelled
}

// record stores an outcome. It outlives the caller's context: a call that was
// cancelled has an outcome too. It is a note: a machine that stops before it is
// on disk loses the record of a read, or leaves a call whose intent is there
// and whose outcome is not, which Recover calls uncertain (REL-01).
func (b *Broker) record(ctx context.Context, c caller.Caller, i run.Invocation, kind audit.Kind) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	i.FinishedAt = b.Now()
	err := b.Store.Note(ctx, c.Scope, func(tx store.Tx) error {
		finish := tx.FinishInvocation
		if i.Tool == action.Observe {
			finish = tx.InsertInvocation
		}
		if err := finish(i); err != nil {
			return err
		}
		if i.Outcome == run.Succeeded {
			if err := withdraw(tx, c, i.FinishedAt); err != nil {
				return err
			}
		}
		_, err := tx.Append(entry(c, kind, i, "", i.FinishedAt))
		return err
	})
	b.Hub.Changed(c.Scope)
	return public(err)
}

// denied writes a policy denial down. A denial stands whether or not it can be
// written.
func (b *Broker) denied(ctx context.Context, c caller.Caller, r action.Request, refusal *fault.Error) {
	err := b.Store.Tx(ctx, c.Scope, func(tx store.Tx) error {
		_, err := tx.Append(audit.Entry{
			Scope: c.Scope, At: b.Now(), Kind: audit.CallDenied, Device: c.Device, Subject: c.Session,
			Tool: string(r.Tool), Digest: r.Digest, Code: string(refusal.Code),
		})
		return err
	})
	if err != nil {
		b.Log.Error("denial not recorded", "session", c.Session, "cause", err)
	}
	b.Hub.Changed(c.Scope)
}
