package owner

import (
	"context"
	"strconv"
	"sync"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/device"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// NewSession says what an agent is to be given: one ready profile, or an
// ephemeral browser on origins of its own.
type NewSession struct {
	Name      string // what the owner calls the agent, 1 to 80 characters; "agent" when empty
	ProfileID string
	Origins   []string // ephemeral only
	Headed    bool     // ephemeral only; a profile is always headed
}

// CreateSession makes a session and the credential that is bound to it, which
// exists only in this answer (BIND-01, TOOL-07). Errors: MalformedRequest,
// NotFound, Conflict for a profile that is not ready.
func (o *Owner) CreateSession(ctx context.Context, by caller.Caller, n NewSession) (run.Session, secret.Text, error) {
	if n.Name == "" {
		n.Name = "agent"
	}
	if len([]rune(n.Name)) > 80 || (n.ProfileID == "") == (len(n.Origins) == 0) || n.ProfileID != "" && n.Headed {
		return run.Session{}, secret.Text{}, fault.New(fault.MalformedRequest, "Name either a profile, or the origins of an ephemeral browser and whether it is headed. Nothing was created.")
	}
	s := run.Session{Scope: by.Scope, ID: ident.New(), ProfileID: n.ProfileID, Headed: n.Headed, Contract: contract.Newest, CreatedAt: o.Now()}
	if n.ProfileID == "" {
		origins, err := parseOrigins(n.Origins)
		if err != nil {
			return run.Session{}, secret.Text{}, err
		}
		s.Origins = origins
	}
	err := o.tx(ctx, by, func(tx store.Tx) error {
		if s.ProfileID != "" {
			origins, err := readyOrigins(tx, s.ProfileID)
			if err != nil {
				return err
			}
			s.Origins, s.Headed = origins, true
		}
		if err := tx.InsertSession(s); err != nil {
			return err
		}
		return o.note(tx, by, audit.SessionStarted, s.ID, s.ProfileID)
	})
	if err != nil {
		return run.Session{}, secret.Text{}, err
	}
	_, credential, err := o.Devices.Pair(ctx, by, n.Name, caller.Agent, s.ID)
	if err != nil {
		undoing, stop := detached(ctx, cleanUpTime)
		defer stop()
		if err := o.EndSession(undoing, by, s.ID); err != nil {
			o.Log.Error("session without a credential not ended", "session", s.ID, "code", fault.CodeOf(err))
		}
		return run.Session{}, secret.Text{}, err
	}
	o.Hub.Changed(by.Scope)
	return s, credential, nil
}

func readyOrigins(tx store.Tx, profileID string) (site.Origins, error) {
	p, err := tx.Profile(profileID)
	if err != nil {
		return nil, err
	}
	if p.Status != profile.Ready {
		return nil, fault.Newf(fault.Conflict, "The profile is %s, not ready. Nothing was created; sign in first.", p.Status)
	}
	return p.Origins, nil
}

// Sessions lists the newest 200 live ones.
func (o *Owner) Sessions(ctx context.Context, by caller.Caller) (list []run.Session, err error) {
	err = o.view(ctx, by, func(tx store.Tx) error {
		list, err = tx.Sessions("", true, listLimit)
		return err
	})
	return list, err
}

// EndSession ends a session with its questions, and closes its browser.
// Ending an ended session changes nothing.
func (o *Owner) EndSession(ctx context.Context, by caller.Caller, id string) error {
	var s run.Session
	err := o.tx(ctx, by, func(tx store.Tx) (err error) {
		if s, err = tx.Session(id); err != nil || !s.Live() {
			return err
		}
		_, err = o.endSession(tx, by, s)
		return err
	})
	if err != nil {
		return err
	}
	asking, stop := detached(ctx, serviceTime)
	defer stop()
	o.closeAll(asking, by.Scope, []run.Session{s})
	return nil
}

func (o *Owner) endSession(tx store.Tx, by caller.Caller, s run.Session) (cancelled int, err error) {
	if err := tx.EndSession(s.ID, o.Now()); err != nil {
		return 0, err
	}
	if cancelled, err = o.cancelApprovals(tx, by, s.ID); err != nil {
		return cancelled, err
	}
	return cancelled, o.note(tx, by, audit.SessionEnded, s.ID, "")
}

// endSessions ends every live session, of one profile only when profileID is
// not empty.
func (o *Owner) endSessions(tx store.Tx, by caller.Caller, profileID string) (ended []run.Session, cancelled int, err error) {
	for {
		live, err := tx.Sessions(profileID, true, listLimit)
		if err != nil {
			return ended, cancelled, err
		}
		for _, s := range live {
			n, err := o.endSession(tx, by, s)
			if err != nil {
				return ended, cancelled, err
			}
			cancelled += n
		}
		ended = append(ended, live...)
		if len(live) < listLimit {
			return ended, cancelled, nil
		}
	}
}

// closeAll closes the browsers of ended sessions, all at once: none waits for
// another's call in flight. What cannot be closed now refuses every call
// already, and its lease runs out.
func (o *Owner) closeAll(ctx context.Context, scope caller.Scope, ended []run.Session) {
	var closing sync.WaitGroup
	for _, s := range ended {
		closing.Go(func() {
			if err := o.Leases.CloseSession(ctx, scope, s.ID); err != nil {
				o.Log.Warn("browser of an ended session not closed", "session", s.ID, "code", fault.CodeOf(err))
			}
		})
	}
	closing.Wait()
}

// Stopped says what the urgent stop ended.
type Stopped struct{ Sessions, Approvals int }

// Stop withdraws every question and ends every session in one transaction,
// then closes their browsers.
func (o *Owner) Stop(ctx context.Context, by caller.Caller) (Stopped, error) {
	var ended []run.Session
	var cancelled int
	err := o.tx(ctx, by, func(tx store.Tx) (err error) {
		if ended, cancelled, err = o.endSessions(tx, by, ""); err != nil {
			return err
		}
		left, err := o.cancelApprovals(tx, by, "")
		if err != nil {
			return err
		}
		cancelled += left
		return o.note(tx, by, audit.StoppedEverything, "", strconv.Itoa(len(ended)))
	})
	if err != nil {
		return Stopped{}, err
	}
	asking, stop := detached(ctx, serviceTime)
	defer stop()
	o.closeAll(asking, by.Scope, ended)
	return Stopped{Sessions: len(ended), Approvals: cancelled}, nil
}

// PairedDevices lists the newest 200 of the caller's scope that may still
// authenticate.
func (o *Owner) PairedDevices(ctx context.Context, by caller.Caller) ([]device.Device, error) {
	if err := by.RequireOwner(); err != nil {
		return nil, err
	}
	list, err := o.Devices.Devices(ctx, by)
	return list, public(err)
}

// RevokeDevice ends the session of an agent's device, and refuses the device
// from its next request on. The session comes first: with it the device cannot
// call anything any more, also if the second step has to be repeated.
func (o *Owner) RevokeDevice(ctx context.Context, by caller.Caller, fingerprint string) error {
	if err := by.RequireOwner(); err != nil {
		return err
	}
	d, err := o.Store.Device(ctx, fingerprint)
	if err == nil && d.Scope != by.Scope {
		err = store.ErrAbsent
	}
	if err != nil {
		return public(err)
	}
	if d.SessionID != "" {
		if err := o.EndSession(ctx, by, d.SessionID); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	if err := o.Devices.Revoke(ctx, by, fingerprint); err != nil {
		return public(err)
	}
	o.Hub.Changed(by.Scope)
	return nil
}
