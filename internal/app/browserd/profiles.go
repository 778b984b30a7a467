package browserd

import (
	"context"
	"errors"
	"sync"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/vault"
)

// Provision implements browser.Service.
func (s *Service) Provision(_ context.Context, scope caller.Scope, profileID string, origins site.Origins) (browser.Provisioned, error) {
	if !scope.Valid() || !ident.Valid(profileID) || len(origins) == 0 {
		return browser.Provisioned{}, fault.New(fault.MalformedRequest, "A profile needs an owner, an id and origins. Nothing was made.")
	}
	r, err := s.vault.Create(scope, profileID, origins)
	if err != nil {
		return browser.Provisioned{}, vaultFailed(err)
	}
	return browser.Provisioned{ProviderName: ProviderName, ProviderRef: r.Ref, KeyVersion: r.KeyVersion}, nil
}

// Revoke implements browser.Service. The fence is durable before the first
// browser is closed, and no browser of the profile is left when it returns nil
// (LEASE-09). When the fence cannot be made durable the browsers are closed
// all the same, and the error asks for a repetition.
func (s *Service) Revoke(_ context.Context, scope caller.Scope, profileID, ref string) error {
	fence := s.vault.Revoke(scope, profileID, ref)
	if fault.Is(fence, fault.ProfileUnavailable) {
		return fence // not this owner's: nothing here is theirs to close
	}
	if err := s.evict(owner{Scope: scope, profileID: profileID}); err != nil {
		return err
	}
	return vaultFailed(fence)
}

// Delete implements browser.Service.
func (s *Service) Delete(_ context.Context, scope caller.Scope, profileID, ref string) error {
	r, err := s.vault.Lookup(scope, profileID, ref)
	if err == nil && !r.Revoked {
		return fault.New(fault.Conflict, "Revoke the profile before deleting it. Nothing was deleted.")
	}
	if err == nil {
		if err := s.evict(owner{Scope: scope, profileID: profileID}); err != nil {
			return err
		}
	}
	if err := s.vault.Delete(scope, profileID, ref); err != nil {
		return vaultFailed(err)
	}
	return nil
}

// evict ends every browser of the owner without sealing and returns when they
// have gone.
func (s *Service) evict(o owner) error {
	doomed := s.running(&o)
	s.mu.Lock()
	var all sync.WaitGroup
	for _, c := range s.openCeremonies() {
		if c.rt.owner == o {
			all.Go(func() { s.conclude(c, cancelled) })
		}
	}
	s.mu.Unlock()
	all.Wait()
	var failed error
	for _, rt := range append(doomed, s.running(&o)...) { // leases, and what started meanwhile
		failed = errors.Join(failed, s.end(rt))
	}
	if failed != nil {
		return fault.Wrap(fault.ProviderUnavailable, "The profile is blocked, but one of its browsers did not close. Try again.", failed).Retry()
	}
	return nil
}

// tuple is the record of the exact tuple with the fence and the origins
// checked (LEASE-07).
func (s *Service) tuple(o owner, ref string, origins site.Origins) (vault.Record, error) {
	r, err := s.vault.Lookup(o.Scope, o.profileID, ref)
	if err != nil {
		return r, vaultFailed(err)
	}
	if r.Revoked || (origins != nil && !r.Origins.Equal(origins)) {
		return r, fault.New(fault.ProfileUnavailable, "The profile is revoked, or its origins are others. Nothing was sent.")
	}
	return r, nil
}

// vaultFailed passes the vault's refusals on and says of everything else, such
// as a full disk, that this service cannot do its work.
func vaultFailed(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Code != fault.Internal {
		return e
	}
	return fault.Wrap(fault.ProviderUnavailable, "The sealed profiles cannot be read or written. Nothing was changed.", err)
}
