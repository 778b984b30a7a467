package broker

import (
	"context"
	"errors"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
)

func newInvocation(c caller.Caller, r action.Request, now time.Time) run.Invocation {
	i := run.Invocation{
		Scope: c.Scope, ID: ident.New(), SessionID: c.Session, Tool: r.Tool, Digest: r.Digest,
		Outcome: run.Running, StartedAt: now,
	}
	if r.Tool.Writes() {
		i.EffectSentAt = now
	}
	return i
}

func entry(c caller.Caller, kind audit.Kind, i run.Invocation, detail string, at time.Time) audit.Entry {
	return audit.Entry{
		Scope: c.Scope, At: at, Kind: kind, Device: c.Device, Subject: c.Session,
		Tool: string(i.Tool), Digest: i.Digest, Code: i.Code, Detail: detail,
	}
}

func unavailable() error {
	return fault.New(fault.ProfileUnavailable, "The profile is not available to this session. Nothing was done.")
}

// public turns a store's error into the refusal to show. A record that is
// absent, foreign or changed underneath reads the same to an agent.
func public(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrAbsent):
		return unavailable()
	case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrExists):
		return fault.Wrap(fault.ProfileUnavailable, "The profile or the approval changed during the call. Nothing was sent; try again.", err).Retry()
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fault.Wrap(fault.ProviderUnavailable, "The call was cancelled before anything was sent.", err).Retry()
	}
	return fault.Wrap(fault.ProviderUnavailable, "Chaperone could not write its records, so nothing was done. The owner can look at the log.", err).Retry()
}
