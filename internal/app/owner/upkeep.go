package owner

import (
	"context"
	"errors"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// abandonedAfter is when a reservation that nobody finished is given up.
const abandonedAfter = 10 * time.Minute

// Upkeep brings the records of every scope up to what has happened since: the
// outcomes of sign-ins (SWEEP-01), revocations that the isolated service has
// not confirmed (PSM-10), reservations left by a crash (PSM-05), and questions
// that nobody answered. It is called at start and about every 15 seconds. What
// fails is logged and tried again the next time.
func (o *Owner) Upkeep(ctx context.Context) error {
	scopes, err := o.Store.Scopes(ctx)
	if err != nil {
		return public(err)
	}
	for _, scope := range scopes {
		system := caller.Caller{Scope: scope, Role: caller.Owner}
		err := errors.Join(o.tendProfiles(ctx, system), o.tendApprovals(ctx, system))
		if err != nil {
			o.Log.Warn("upkeep incomplete", "code", fault.CodeOf(err))
		}
	}
	return nil
}

func (o *Owner) tendProfiles(ctx context.Context, system caller.Caller) error {
	list, err := o.Profiles(ctx, system)
	if err != nil {
		return err
	}
	var failed error
	for _, p := range list {
		var err error
		switch p.Status {
		case profile.Revoked:
			err = o.fence(ctx, p.Profile)
		case profile.Provisioning:
			if o.Now().Sub(p.CreatedAt) > abandonedAfter {
				_, _, err = o.markRevoked(ctx, system, p.ID)
			}
		default:
			err = o.tendCeremony(ctx, system, p.ID)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func (o *Owner) tendCeremony(ctx context.Context, system caller.Caller, profileID string) error {
	c, err := o.latest(ctx, system, profileID)
	if fault.Is(err, fault.NotFound) || err == nil && c.Status.Terminal() {
		return nil
	}
	if err == nil {
		_, err = o.Ceremony(ctx, system, c.ID)
	}
	return err
}

// tendApprovals records the expiry of questions that nobody answered, and of
// answers that nobody used.
func (o *Owner) tendApprovals(ctx context.Context, system caller.Caller) error {
	due, err := o.overdue(ctx, system)
	if err != nil || len(due) == 0 {
		return err
	}
	return o.tx(ctx, system, func(tx store.Tx) error {
		for _, id := range due {
			old, err := tx.Approval(id)
			if err != nil {
				return err
			}
			now := old.At(o.Now())
			if now.Status == old.Status {
				continue // it was answered or used in between
			}
			if err := tx.UpdateApproval(now, old.Status); err != nil {
				return err
			}
			if err := o.noteApproval(tx, system, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func (o *Owner) overdue(ctx context.Context, system caller.Caller) (ids []string, err error) {
	err = o.view(ctx, system, func(tx store.Tx) error {
		open, err := tx.Approvals("", listLimit, approval.Pending, approval.Approved)
		now := o.Now()
		for _, a := range open {
			if a.At(now).Status == approval.Expired {
				ids = append(ids, a.ID)
			}
		}
		return err
	})
	return ids, err
}
