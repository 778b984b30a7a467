package owner

import (
	"context"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// Begun is a sign-in that has just begun. LaunchURL exists only here (CER-02).
type Begun struct {
	ceremony.Ceremony
	LaunchURL secret.Text
}

// The refusals of a sign-in address (LURL-01, LURL-03). They never repeat it.
const (
	badLogin     = "The sign-in address must be an https:// address of one of the profile's websites. Nothing was started."
	foreignLogin = "The sign-in address is not on one of the profile's websites. Nothing was started; use an address on them, or create a profile for that website."
	wwwLogin     = "The sign-in address and the profile differ by a leading www: for a browser those are two websites. Nothing was started; use the address that the browser shows in the end, or create a profile for that spelling."
	movedLogin   = "The sign-in address leads to a website that the profile does not name, perhaps the same name with or without www. Nothing was started; open the site yourself and use the address that the browser shows in the end."
)

// BeginCeremony starts a sign-in of the profile at loginURL, or at the home
// page of its first origin when that is empty. It is refused while another one
// is open (CER-03). Errors: NotFound, InvalidTransition, MalformedRequest,
// Conflict, ProviderUnavailable; with every one of them nothing was recorded.
func (o *Owner) BeginCeremony(ctx context.Context, by caller.Caller, profileID, loginURL string) (Begun, error) {
	if err := by.RequireOwner(); err != nil {
		return Begun{}, err
	}
	release, err := o.locks.take(ctx, key{by.Scope, profileID})
	if err != nil {
		return Begun{}, err
	}
	defer release()

	whole, err := o.Profile(ctx, by, profileID)
	if err != nil {
		return Begun{}, err
	}
	p := whole.Profile
	if err := mayBegin(p); err != nil {
		return Begun{}, err
	}
	login, err := loginAt(p.Origins, loginURL)
	if err != nil {
		return Begun{}, err
	}
	if err := o.noneOpen(ctx, by, profileID); err != nil {
		return Begun{}, err
	}
	launching, stop := detached(ctx, launchTime)
	defer stop()
	if err := o.keepAgentsOut(launching, by, profileID); err != nil {
		return Begun{}, err
	}
	made, err := o.Service.BeginCeremony(launching, by.Scope, profileID, p.ProviderRef, login)
	switch {
	case fault.Is(err, fault.URLDisallowed):
		return Begun{}, fault.Wrap(fault.MalformedRequest, movedLogin, err)
	case fault.Is(err, fault.SiteUnreachable):
		return Begun{}, fault.Wrap(fault.ProviderUnavailable, "The website did not answer. Nothing was recorded; check the address and the network, then try again.", err).Retry()
	case err != nil:
		return Begun{}, fault.Wrap(fault.ProviderUnavailable, "The sign-in browser could not be started. Nothing was recorded; try again, and if that does not help, run: chaperone doctor.", err).Retry()
	}
	begun, err := o.recordBegin(ctx, by, profileID, made)
	if err != nil {
		undoing, stop := detached(ctx, cleanUpTime)
		defer stop()
		if err := o.Service.CancelCeremony(undoing, by.Scope, made.ID); err != nil {
			o.Log.Error("unrecorded sign-in not cancelled; it expires by itself", "profile", profileID, "code", fault.CodeOf(err))
		}
		return Begun{}, err
	}
	return Begun{Ceremony: begun, LaunchURL: made.LaunchURL}, nil
}

func mayBegin(p profile.Profile) error {
	if p.Status == profile.Revoked || p.Status == profile.Provisioning {
		return fault.Newf(fault.InvalidTransition, "A profile that is %s cannot be signed in. Nothing was started.", p.Status)
	}
	return nil
}

// loginAt validates where a sign-in starts.
func loginAt(origins site.Origins, loginURL string) (site.URL, error) {
	if loginURL == "" {
		loginURL = origins[0].String() + "/"
	}
	u, err := site.ParseURL(loginURL)
	if err != nil {
		return site.URL{}, fault.Wrap(fault.MalformedRequest, badLogin, err)
	}
	if origins.Has(u.Origin()) {
		return u, nil
	}
	for _, o := range origins {
		if strings.TrimPrefix(o.Host(), "www.") == strings.TrimPrefix(u.Host(), "www.") {
			return site.URL{}, fault.New(fault.MalformedRequest, wwwLogin)
		}
	}
	return site.URL{}, fault.New(fault.MalformedRequest, foreignLogin)
}

// noneOpen refuses while a sign-in is open. One whose outcome is not on record
// yet is looked up first, so that a finished one is not in the way.
func (o *Owner) noneOpen(ctx context.Context, by caller.Caller, profileID string) error {
	c, err := o.latest(ctx, by, profileID)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !c.Status.Terminal() {
		fresh, err := o.Ceremony(ctx, by, c.ID)
		if err != nil && c.Open(o.Now()) {
			return err
		}
		if err == nil {
			c = fresh
		}
	}
	if c.Open(o.Now()) {
		return fault.New(fault.Conflict, "A sign-in of this profile is open already. Nothing was started; finish or cancel it first.")
	}
	return nil
}

func (o *Owner) latest(ctx context.Context, by caller.Caller, profileID string) (c ceremony.Ceremony, err error) {
	err = o.view(ctx, by, func(tx store.Tx) error { c, err = tx.LatestCeremony(profileID); return err })
	return c, err
}

// keepAgentsOut closes the browsers that agents hold on the profile. From here
// to the record the isolated service keeps them out; afterwards the record
// does, too.
func (o *Owner) keepAgentsOut(ctx context.Context, by caller.Caller, profileID string) error {
	var ids []string
	err := o.view(ctx, by, func(tx store.Tx) error {
		live, err := tx.Sessions(profileID, true, listLimit)
		for _, s := range live {
			ids = append(ids, s.ID)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := o.Leases.CloseSession(ctx, by.Scope, id); err != nil {
			return fault.Wrap(fault.ProviderUnavailable, "An agent's browser on this profile could not be closed. Nothing was started; try again.", err).Retry()
		}
	}
	return nil
}

// recordBegin stores the ceremony with the new generation that ends whatever
// was granted for the earlier sign-in (PSM-08).
func (o *Owner) recordBegin(ctx context.Context, by caller.Caller, profileID string, made browser.Ceremony) (c ceremony.Ceremony, err error) {
	now := o.Now()
	c = ceremony.Ceremony{Scope: by.Scope, ID: made.ID, ProfileID: profileID, Status: made.Status, ExpiresAt: made.ExpiresAt, CreatedAt: now, UpdatedAt: now}
	if latest := now.Add(ceremony.Life); c.ExpiresAt.After(latest) {
		c.ExpiresAt = latest
	}
	err = o.tx(ctx, by, func(tx store.Tx) error {
		p, err := tx.Profile(profileID) // it may have been revoked while the browser started
		if err != nil {
			return err
		}
		if err := mayBegin(p); err != nil {
			return err
		}
		if err := tx.UpdateProfile(p.SignIn(now), p.Generation); err != nil {
			return err
		}
		if err := tx.InsertCeremony(c); err != nil {
			return err
		}
		live, err := tx.Sessions(profileID, true, listLimit)
		if err != nil {
			return err
		}
		for _, s := range live {
			if _, err := o.cancelApprovals(tx, by, s.ID); err != nil {
				return err
			}
		}
		return o.note(tx, by, audit.CeremonyBegun, c.ID, "")
	})
	return c, err
}

// Ceremony is the sign-in as the isolated service sees it now; an outcome is
// recorded and moves the profile (CER-06, PSM-06, READY-04). A sign-in that
// the service does not know any more has expired with its browser.
func (o *Owner) Ceremony(ctx context.Context, by caller.Caller, id string) (ceremony.Ceremony, error) {
	c, err := o.ceremony(ctx, by, id)
	if err != nil || c.Status.Terminal() {
		return c, err
	}
	asking, stop := context.WithTimeout(ctx, serviceTime)
	defer stop()
	status, err := o.Service.CeremonyStatus(asking, by.Scope, id)
	if fault.Is(err, fault.NotFound) {
		status, err = ceremony.Expired, nil
	}
	if err != nil || status == c.Status {
		return c, err
	}
	return o.record(ctx, by, id, status)
}

// CancelCeremony ends the sign-in. One that has an outcome keeps it.
func (o *Owner) CancelCeremony(ctx context.Context, by caller.Caller, id string) (ceremony.Ceremony, error) {
	c, err := o.ceremony(ctx, by, id)
	if err != nil || c.Status.Terminal() {
		return c, err
	}
	asking, stop := detached(ctx, serviceTime)
	defer stop()
	if err := o.Service.CancelCeremony(asking, by.Scope, id); err != nil && !fault.Is(err, fault.NotFound) {
		return c, err
	}
	status, err := o.Service.CeremonyStatus(asking, by.Scope, id) // it may have succeeded a moment before
	if err != nil || !status.Terminal() {
		status = ceremony.Cancelled
	}
	return o.record(asking, by, id, status)
}

func (o *Owner) ceremony(ctx context.Context, by caller.Caller, id string) (c ceremony.Ceremony, err error) {
	err = o.view(ctx, by, func(tx store.Tx) error { c, err = tx.Ceremony(id); return err })
	return c, err
}

func (o *Owner) record(ctx context.Context, by caller.Caller, id string, status ceremony.Status) (c ceremony.Ceremony, err error) {
	err = o.tx(ctx, by, func(tx store.Tx) error {
		c, err = tx.Ceremony(id)
		if err == nil {
			c, err = o.settle(tx, by, c, status)
		}
		return err
	})
	return c, err
}

// settle stores a new status of the ceremony and, when it is ready, of the
// profile. A revoked profile stays revoked.
func (o *Owner) settle(tx store.Tx, by caller.Caller, c ceremony.Ceremony, status ceremony.Status) (ceremony.Ceremony, error) {
	now := o.Now()
	next, changed := c.To(status, now)
	if !changed {
		return c, nil
	}
	if err := tx.UpdateCeremony(next, c.Status); err != nil || !status.Terminal() {
		return next, err
	}
	if err := o.note(tx, by, audit.CeremonyEnded, c.ID, string(status)); err != nil || status != ceremony.Ready {
		return next, err
	}
	return next, o.signedIn(tx, by, c.ProfileID, now)
}

func (o *Owner) signedIn(tx store.Tx, by caller.Caller, profileID string, now time.Time) error {
	p, err := tx.Profile(profileID)
	if err != nil || p.Status == profile.Revoked {
		return err
	}
	next := p.SignIn(now)
	if p.Status != profile.Ready {
		if next, err = p.To(profile.Ready, now); err != nil {
			return err
		}
	}
	if err := tx.UpdateProfile(next, p.Generation); err != nil {
		return err
	}
	return o.note(tx, by, audit.ProfileChanged, profileID, string(next.Status))
}
