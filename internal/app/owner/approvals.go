package owner

import (
	"context"
	"errors"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// Approvals lists the newest as they stand now, those with the status only
// when it is not empty. limit is 1 to 200.
func (o *Owner) Approvals(ctx context.Context, by caller.Caller, status approval.Status, limit int) (list []approval.Approval, err error) {
	var stored []approval.Status
	switch status {
	case "":
	case approval.Expired: // also a question whose expiry nobody has recorded yet
		stored = []approval.Status{approval.Pending, approval.Approved, approval.Expired}
	default:
		stored = []approval.Status{status}
	}
	err = o.view(ctx, by, func(tx store.Tx) error {
		all, err := tx.Approvals("", limit, stored...)
		now := o.Now()
		for _, a := range all {
			if a = a.At(now); status == "" || a.Status == status {
				list = append(list, a)
			}
		}
		return err
	})
	return list, err
}

// Approval returns one as it stands now.
func (o *Owner) Approval(ctx context.Context, by caller.Caller, id string) (a approval.Approval, err error) {
	err = o.view(ctx, by, func(tx store.Tx) error { a, err = tx.Approval(id); return err })
	return a.At(o.Now()), err
}

// Resolve answers a question, once: fault.Conflict says that it has an answer
// already, has expired, or was asked before the session ended or the profile
// was signed in anew.
func (o *Owner) Resolve(ctx context.Context, by caller.Caller, id string, d approval.Decision, reason string) (a approval.Approval, err error) {
	err = o.tx(ctx, by, func(tx store.Tx) error {
		old, err := tx.Approval(id)
		if err != nil {
			return err
		}
		if a, err = old.Decide(d, reason, by.Device, o.Now()); err != nil {
			return err
		}
		if d == approval.ApproveOnce {
			if err := stillMeant(tx, old); err != nil {
				return err
			}
		}
		if err := tx.UpdateApproval(a, old.Status); err != nil {
			return err
		}
		return o.noteApproval(tx, by, a)
	})
	return a, err
}

// stillMeant refuses to approve what could not be carried out any more, so
// that "approved" never means nothing.
func stillMeant(tx store.Tx, a approval.Approval) error {
	s, err := tx.Session(a.SessionID)
	if err != nil && !errors.Is(err, store.ErrAbsent) {
		return err
	}
	if err != nil || !s.Live() {
		return fault.New(fault.Conflict, "The agent's session has ended. Nothing was approved.")
	}
	if a.ProfileID == "" {
		return nil
	}
	p, err := tx.Profile(a.ProfileID)
	if err != nil && !errors.Is(err, store.ErrAbsent) {
		return err
	}
	if err != nil || p.Generation != a.Generation {
		return fault.New(fault.Conflict, "The profile has changed since the agent asked. Nothing was approved; the agent has to ask again.")
	}
	return nil
}

func (o *Owner) noteApproval(tx store.Tx, by caller.Caller, a approval.Approval) error {
	_, err := tx.Append(audit.Entry{
		Scope: by.Scope, At: o.Now(), Kind: audit.ApprovalResolved, Device: by.Device, Subject: a.ID,
		Tool: string(a.Tool), Digest: a.Digest, Detail: string(a.Status),
	})
	return err
}

// cancelApprovals withdraws every unused question of the session.
func (o *Owner) cancelApprovals(tx store.Tx, by caller.Caller, sessionID string) (n int, err error) {
	for {
		open, err := tx.Approvals(sessionID, listLimit, approval.Pending, approval.Approved)
		if err != nil {
			return n, err
		}
		for _, a := range open {
			cancelled := a.Cancel()
			if err := tx.UpdateApproval(cancelled, a.Status); err != nil {
				return n, err
			}
			if err := o.noteApproval(tx, by, cancelled); err != nil {
				return n, err
			}
			n++
		}
		if len(open) < listLimit {
			return n, nil
		}
	}
}
