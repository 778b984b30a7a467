package owner

import (
	"context"
	"errors"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// Profile is a profile with its open sign-in, if it has one.
type Profile struct {
	profile.Profile
	Open *ceremony.Ceremony
}

// Profiles lists the newest 200.
func (o *Owner) Profiles(ctx context.Context, by caller.Caller) (list []Profile, err error) {
	err = o.view(ctx, by, func(tx store.Tx) error {
		all, err := tx.Profiles(listLimit)
		if err != nil {
			return err
		}
		for _, p := range all {
			whole, err := o.withCeremony(tx, p)
			if err != nil {
				return err
			}
			list = append(list, whole)
		}
		return nil
	})
	return list, err
}

// Profile returns one; fault.NotFound if there is none in the caller's scope.
func (o *Owner) Profile(ctx context.Context, by caller.Caller, id string) (whole Profile, err error) {
	err = o.view(ctx, by, func(tx store.Tx) error {
		p, err := tx.Profile(id)
		if err == nil {
			whole, err = o.withCeremony(tx, p)
		}
		return err
	})
	return whole, err
}

func (o *Owner) withCeremony(tx store.Tx, p profile.Profile) (Profile, error) {
	c, err := tx.LatestCeremony(p.ID)
	if errors.Is(err, store.ErrAbsent) || err == nil && !c.Open(o.Now()) {
		return Profile{Profile: p}, nil
	}
	return Profile{Profile: p, Open: &c}, err
}

// CreateProfile reserves the identifier that belongs to the idempotency key,
// has material made for it, and binds the two (PSM-04). Repeating it with the
// same key and origins answers with the same profile and finishes what an
// earlier attempt left half done. Errors: MalformedRequest, Conflict for a key
// that was used otherwise, ProviderUnavailable.
func (o *Owner) CreateProfile(ctx context.Context, by caller.Caller, idempotencyKey string, origins []string) (Profile, error) {
	if err := by.RequireOwner(); err != nil {
		return Profile{}, err
	}
	wanted, err := parseOrigins(origins)
	if err != nil {
		return Profile{}, err
	}
	if idempotencyKey == "" {
		return Profile{}, fault.New(fault.MalformedRequest, "Creating a profile needs an idempotency key. Nothing was created.")
	}
	id := ident.Derived("browser-profile", by.Tenant, by.Principal, idempotencyKey)
	release, err := o.locks.take(ctx, key{by.Scope, id})
	if err != nil {
		return Profile{}, err
	}
	defer release()

	p, err := o.reserve(ctx, by, id, wanted)
	if err != nil || p.Status != profile.Provisioning {
		return Profile{Profile: p}, err
	}
	asking, stop := detached(ctx, serviceTime)
	defer stop()
	made, err := o.Service.Provision(asking, by.Scope, id, wanted)
	if err != nil {
		return Profile{}, errors.Join(err, o.giveUp(ctx, by, p))
	}
	bound, err := o.bind(asking, by, id, made)
	if err != nil {
		undoing, stop := detached(ctx, cleanUpTime)
		defer stop()
		undone := o.discard(undoing, by.Scope, id, made.ProviderRef)
		return Profile{}, errors.Join(err, undone, o.giveUp(ctx, by, p))
	}
	return Profile{Profile: bound}, nil
}

// parseOrigins validates the origins of a profile or of an ephemeral session.
func parseOrigins(list []string) (site.Origins, error) {
	origins, err := site.ParseOrigins(list)
	if err != nil {
		return nil, fault.Wrap(fault.MalformedRequest, fault.Public(err).Public+" Nothing was created.", err)
	}
	for _, o := range origins {
		if site.PublicSuffix(o.Host()) {
			return nil, fault.New(fault.MalformedRequest, "An origin must be a website of its own, not a suffix that many websites share. Nothing was created.")
		}
	}
	return origins, nil
}

// reserve stores the reservation, or returns what the key made earlier.
func (o *Owner) reserve(ctx context.Context, by caller.Caller, id string, origins site.Origins) (p profile.Profile, err error) {
	err = o.tx(ctx, by, func(tx store.Tx) error {
		p, err = tx.Profile(id)
		switch {
		case errors.Is(err, store.ErrAbsent):
			p = profile.Reserve(by.Scope, id, origins, o.Now())
			if err := tx.InsertProfile(p); err != nil {
				return err
			}
			return o.note(tx, by, audit.ProfileCreated, id, string(p.Status))
		case err != nil:
			return err
		case !p.Origins.Equal(origins) || p.Status == profile.Revoked:
			return fault.New(fault.Conflict, "That idempotency key was used for another profile. Nothing was created; use a new key.")
		}
		return nil
	})
	return p, err
}

// bind attaches the material to the reservation. An answer of the store that
// was lost is looked up before it counts as a failure.
func (o *Owner) bind(ctx context.Context, by caller.Caller, id string, made browser.Provisioned) (bound profile.Profile, err error) {
	err = o.tx(ctx, by, func(tx store.Tx) error {
		p, err := tx.Profile(id)
		if err != nil {
			return err
		}
		if bound, err = p.Bind(made.ProviderName, made.ProviderRef, made.KeyVersion, o.Now()); err != nil {
			return err
		}
		if err := tx.UpdateProfile(bound, p.Generation); err != nil {
			return err
		}
		return o.note(tx, by, audit.ProfileChanged, id, string(bound.Status))
	})
	if err == nil {
		return bound, nil
	}
	stored, lookErr := o.Profile(ctx, by, id)
	if lookErr == nil && stored.ProviderRef == made.ProviderRef && stored.Status != profile.Revoked {
		return stored.Profile, nil
	}
	return profile.Profile{}, err
}

// giveUp turns a reservation that could not be finished into a revoked one
// (PSM-05).
func (o *Owner) giveUp(ctx context.Context, by caller.Caller, p profile.Profile) error {
	ctx, stop := detached(ctx, cleanUpTime)
	defer stop()
	_, _, err := o.markRevoked(ctx, by, p.ID)
	if err != nil {
		o.Log.Error("reservation not marked as revoked", "profile", p.ID, "code", fault.CodeOf(err))
	}
	return err
}

// discard removes material: the service deletes only what is revoked. Material
// that is gone already cannot be revoked, and need not be.
func (o *Owner) discard(ctx context.Context, scope caller.Scope, id, ref string) error {
	if err := o.Service.Revoke(ctx, scope, id, ref); err != nil && !fault.Is(err, fault.ProfileUnavailable) {
		return err
	}
	return o.Service.Delete(ctx, scope, id, ref)
}

// RevokeProfile takes the profile away for good (PSM-10). From the commit on
// nothing can use it; ProviderUnavailable says only that the closing of its
// browsers was not confirmed, and repeating the request asks again.
func (o *Owner) RevokeProfile(ctx context.Context, by caller.Caller, id string) (Profile, error) {
	p, ended, err := o.markRevoked(ctx, by, id)
	if err != nil {
		return Profile{}, err
	}
	asking, stop := detached(ctx, serviceTime)
	defer stop()
	if err := o.fence(asking, p); err != nil {
		return Profile{Profile: p}, fault.Wrap(fault.ProviderUnavailable,
			"The profile is revoked and no call can use it. That its browsers are closed could not be confirmed; repeat the request.", err).Retry()
	}
	o.closeAll(asking, by.Scope, ended)
	return Profile{Profile: p}, nil
}

// markRevoked commits the revocation with everything that hangs on the profile.
func (o *Owner) markRevoked(ctx context.Context, by caller.Caller, id string) (p profile.Profile, ended []run.Session, err error) {
	err = o.tx(ctx, by, func(tx store.Tx) error {
		old, err := tx.Profile(id)
		if err != nil {
			return err
		}
		if p, err = old.To(profile.Revoked, o.Now()); err != nil || old.Status == profile.Revoked {
			return err
		}
		if err := tx.UpdateProfile(p, old.Generation); err != nil {
			return err
		}
		if ended, _, err = o.endSessions(tx, by, id); err != nil {
			return err
		}
		c, err := tx.LatestCeremony(id)
		if err == nil {
			_, err = o.settle(tx, by, c, ceremony.Cancelled)
		}
		if err != nil && !errors.Is(err, store.ErrAbsent) {
			return err
		}
		return o.note(tx, by, audit.ProfileRevoked, id, "")
	})
	return p, ended, err
}

// fence asks the isolated service to refuse the profile and close its browsers.
func (o *Owner) fence(ctx context.Context, p profile.Profile) error {
	k := key{p.Scope, p.ID}
	if p.ProviderRef == "" || o.revoked.has(k) {
		return nil
	}
	if err := o.Service.Revoke(ctx, p.Scope, p.ID, p.ProviderRef); err != nil {
		o.Log.Warn("revocation not confirmed by the isolated service", "profile", p.ID, "code", fault.CodeOf(err))
		return err
	}
	o.revoked.set(k, true)
	return nil
}

// DeleteProfile deletes a revoked profile: material first, then metadata
// (PSM-11). A deleted profile is absent: fault.NotFound.
func (o *Owner) DeleteProfile(ctx context.Context, by caller.Caller, id string) error {
	whole, err := o.Profile(ctx, by, id)
	if err != nil {
		return err
	}
	p := whole.Profile
	if p.Status != profile.Revoked {
		return fault.New(fault.InvalidTransition, "Only a revoked profile can be deleted. Nothing was changed; revoke it first.")
	}
	asking, stop := detached(ctx, serviceTime)
	defer stop()
	if err := o.removeMaterial(asking, p); err != nil {
		return fault.Wrap(fault.ProviderUnavailable, "The sealed session could not be removed, so the profile is kept. Repeat the request.", err).Retry()
	}
	err = o.tx(asking, by, func(tx store.Tx) error {
		if err := tx.DeleteProfile(id, p.Generation); err != nil {
			return err
		}
		return o.note(tx, by, audit.ProfileDeleted, id, "")
	})
	if err == nil {
		o.revoked.set(key{p.Scope, id}, false)
	}
	return err
}

// removeMaterial also finds the material of a reservation whose binding was
// never stored: provisioning is idempotent, so it names it once more.
func (o *Owner) removeMaterial(ctx context.Context, p profile.Profile) error {
	ref := p.ProviderRef
	if ref == "" {
		made, err := o.Service.Provision(ctx, p.Scope, p.ID, p.Origins)
		if fault.Is(err, fault.ProviderUnavailable) {
			return err
		}
		if err != nil {
			return nil // it refuses these origins for good, so it never had any
		}
		ref = made.ProviderRef
	}
	return o.discard(ctx, p.Scope, p.ID, ref)
}
