package browserd_test

import (
	"slices"
	"sync"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/vault"
)

// memory is a vault in memory that can fail, for tests that need bubbles of
// fake time or a full disk. The contract runs over the real one.
type memory struct {
	mu       sync.Mutex
	records  map[string]*vault.Record
	sealed   map[string]string
	seals    int
	sealErr  error
	fenceErr error
	onSeal   func() // runs before a seal, without the lock
}

func newMemory() *memory {
	return &memory{records: map[string]*vault.Record{}, sealed: map[string]string{}}
}

func (m *memory) set(change func(*memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

// holds is what is sealed, and how often something was.
func (m *memory) holds(profileID string) (string, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sealed[profileID], m.seals
}

func (m *memory) find(scope caller.Scope, id, ref string) (*vault.Record, error) {
	r := m.records[id]
	if r == nil || r.Scope != scope || r.Ref != ref {
		return nil, fault.New(fault.ProfileUnavailable, "There is no such profile.")
	}
	return r, nil
}

func (m *memory) Create(scope caller.Scope, id string, origins site.Origins) (vault.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records[id] == nil {
		m.records[id] = &vault.Record{Scope: scope, ProfileID: id, Ref: ident.Token(32), Origins: slices.Clone(origins), KeyVersion: "k1"}
	}
	return *m.records[id], nil
}

func (m *memory) Lookup(scope caller.Scope, id, ref string) (vault.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find(scope, id, ref)
	if err != nil {
		return vault.Record{}, err
	}
	return *r, nil
}

func (m *memory) Load(scope caller.Scope, id, ref string) (secret.Bytes, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find(scope, id, ref)
	if err != nil || r.Revoked {
		return secret.Bytes{}, fault.New(fault.ProfileUnavailable, "The profile is revoked.")
	}
	return secret.NewBytes([]byte(m.sealed[id])), nil
}

func (m *memory) Seal(scope caller.Scope, id, ref string, plain secret.Bytes) error {
	m.mu.Lock()
	hook := m.onSeal
	m.mu.Unlock()
	if hook != nil {
		hook()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find(scope, id, ref)
	switch {
	case err != nil || r.Revoked:
		return fault.New(fault.ProfileUnavailable, "The profile is revoked.")
	case m.sealErr != nil:
		return m.sealErr
	}
	m.sealed[id] = string(plain.Reveal())
	m.seals++
	return nil
}

func (m *memory) Revoke(scope caller.Scope, id, ref string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find(scope, id, ref)
	if err != nil {
		return err
	}
	r.Revoked = true
	return m.fenceErr
}

func (m *memory) Delete(scope caller.Scope, id, ref string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, id)
	delete(m.sealed, id)
	return nil
}
