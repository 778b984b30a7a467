package broker

import (
	"context"
	"errors"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// MaxOpen is how many questions of one session may wait for the owner at once.
const MaxOpen = 20

// await returns nil when the owner approved the call, and the refusal
// otherwise. It waits at most ApprovalWait.
func (b *Broker) await(ctx context.Context, c caller.Caller, bound binding, r action.Request, image artifact.Image, onWait func(Pending)) error {
	asked, err := b.ask(ctx, c, bound, r, image)
	if err != nil || asked.Status == approval.Approved {
		return err
	}
	pending := Pending{ApprovalID: asked.ID, Address: b.ApprovalURL(asked.ID), Summary: asked.Summary, ExpiresAt: asked.ExpiresAt}
	if onWait != nil && b.ApprovalWait > 0 {
		onWait(pending)
	}
	waiting, stop := context.WithTimeout(ctx, b.ApprovalWait)
	defer stop()
	var verdict error
	err = b.Hub.Wait(waiting, c.Scope, func() (bool, error) {
		verdict = b.decided(ctx, c, asked.ID)
		return !fault.Is(verdict, fault.ApprovalPending), nil
	})
	switch {
	case ctx.Err() != nil:
		return fault.Wrap(fault.ApprovalPending, "The call was cancelled while it waited for the owner. Nothing was sent.", ctx.Err()).Retry()
	case err == nil:
		return verdict
	}
	return &PendingError{Pending: pending, fault: fault.New(fault.ApprovalPending,
		"The owner has not decided yet. Nothing was sent. Repeat the identical call, without observing in between, to go on waiting for the same decision.").Retry()}
}

// decided is nil once the approval may be spent.
func (b *Broker) decided(ctx context.Context, c caller.Caller, id string) error {
	return public(b.Store.View(ctx, c.Scope, func(tx store.Tx) error {
		a, err := tx.Approval(id)
		if err != nil {
			return err
		}
		return state(a, b.Now())
	}))
}

// state is nil for an approval that may be spent, and the refusal otherwise.
func state(a approval.Approval, now time.Time) error {
	_, err := a.Use(a.SessionID, a.Digest, a.Generation, now)
	return err
}

// ask finds the question that the call belongs to, or puts it to the owner.
// Identical calls share one question, and an answer that was used for an
// effect is never asked again.
func (b *Broker) ask(ctx context.Context, c caller.Caller, bound binding, r action.Request, image artifact.Image) (approval.Approval, error) {
	view, summary, err := b.session(c).describe(r, image)
	if err != nil {
		return approval.Approval{}, err
	}
	now := b.Now()
	var asked approval.Approval
	var created bool
	err = b.Store.Tx(ctx, c.Scope, func(tx store.Tx) error {
		last, err := tx.LastApproval(bound.session.ID, r.Digest)
		switch {
		case errors.Is(err, store.ErrAbsent):
		case err != nil:
			return err
		case last.Generation != bound.profile.Generation || last.At(now).Status == approval.Expired:
			if err := expire(tx, c, last, now); err != nil {
				return err
			}
		case last.Status == approval.Used && r.Tool == action.Navigate: // an address may be opened again, if the owner says so again
		case last.Status == approval.Used:
			if err := replayed(tx, last); err != nil {
				return err
			}
		default:
			asked = last
			if err := state(last, now); err != nil && !fault.Is(err, fault.ApprovalPending) {
				return err
			}
			return nil
		}
		open, err := tx.Approvals(bound.session.ID, MaxOpen, approval.Pending, approval.Approved)
		if err != nil {
			return err
		}
		if len(open) == MaxOpen {
			return fault.New(fault.ActionNotAllowed, "Too many actions of this session wait for the owner already. Nothing was asked or sent; wait for an answer, or observe again to withdraw them.")
		}
		asked = approval.Approval{
			Scope: c.Scope, ID: ident.New(), SessionID: bound.session.ID, ProfileID: bound.session.ProfileID,
			Generation: bound.profile.Generation, Tool: r.Tool, Digest: r.Digest, Status: approval.Pending,
			Summary: summary, View: view, CreatedAt: now, ExpiresAt: now.Add(approval.Life),
		}
		detail := "waiting"
		if b.ApproveAll {
			if asked, err = asked.Decide(approval.ApproveOnce, "", "development-mode", now); err != nil {
				return err
			}
			detail = "approved by development mode"
		}
		if err := tx.InsertApproval(asked); err != nil {
			return err
		}
		created = true
		_, err = tx.Append(audit.Entry{
			Scope: c.Scope, At: now, Kind: audit.ApprovalRequested, Device: c.Device, Subject: asked.ID,
			Tool: string(r.Tool), Digest: r.Digest, Detail: detail,
		})
		return err
	})
	if err == nil && created && asked.Status == approval.Pending && r.Tool.Writes() {
		b.illustrate(ctx, c, asked.ID, r)
	}
	b.Hub.Changed(c.Scope)
	return asked, public(err)
}

// expire closes a question that nobody may answer any more, so that another
// can be asked.
func expire(tx store.Tx, c caller.Caller, last approval.Approval, now time.Time) error {
	if last.Status != approval.Pending && last.Status != approval.Approved {
		return nil
	}
	expired := last
	expired.Status = approval.Expired
	if err := tx.UpdateApproval(expired, last.Status); err != nil {
		return err
	}
	_, err := tx.Append(audit.Entry{
		Scope: c.Scope, At: now, Kind: audit.ApprovalResolved, Subject: last.ID,
		Tool: string(last.Tool), Digest: last.Digest, Detail: string(approval.Expired),
	})
	return err
}

// withdraw cancels the session's open questions: a new observation has made
// the revision they are about unusable.
func withdraw(tx store.Tx, c caller.Caller, now time.Time) error {
	open, err := tx.Approvals(c.Session, 200, approval.Pending, approval.Approved)
	if err != nil {
		return err
	}
	for _, a := range open {
		if err := tx.UpdateApproval(a.Cancel(), a.Status); err != nil {
			return err
		}
		_, err := tx.Append(audit.Entry{
			Scope: c.Scope, At: now, Kind: audit.ApprovalResolved, Device: c.Device, Subject: a.ID,
			Tool: string(a.Tool), Digest: a.Digest, Detail: string(approval.Cancelled),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// replayed refuses a call whose approval already led to an effect, or may
// have. One that provably sent nothing may be asked about again.
func replayed(tx store.Tx, used approval.Approval) error {
	calls, err := tx.Invocations(used.SessionID, 200)
	if err != nil {
		return err
	}
	for _, i := range calls {
		if i.ApprovalID == used.ID && i.Outcome == run.Failed {
			return nil
		}
	}
	return fault.New(fault.PageChanged, "This exact call has been carried out already and is not repeated. Observe and decide what to do next.")
}
