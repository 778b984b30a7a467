package vaulttest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/vault"
	"github.com/chaperone-agents/chaperone/internal/vault/keyring"
)

// flaws are what a model can do wrong, one at a time.
type flaws struct {
	sameNonce, noAAD, writeInPlace, fenceInMemory, foreignVisible, emptySeal, plaintext, newRefOnRepeat,
	conflictIgnored, noBounds, refInName, publicMode, skipsVerify, skipsStrangers, keepsStaging, noLock,
	deleteUnfenced, deleteKeepsFile, rotateForgets, rotateIgnoresContext, sharesBytes, loadsFenced, oldKeyForSeal bool
}

// model is a second, simple vault: correct with no flaw, and otherwise what
// the contract must catch. It keeps no index; every call reads every file.
type model struct {
	flaws
	c      vault.Config
	keys   *keyring.Keyring
	lock   *flock.Flock
	fences map[string]bool   // fenceInMemory
	shared map[string][]byte // sharesBytes
}

type modelMeta struct {
	Format     int          `json:"format"`
	ProfileID  string       `json:"profile_id"`
	Tenant     string       `json:"tenant_id"`
	Principal  string       `json:"principal_id"`
	Ref        string       `json:"provider_ref"`
	Origins    site.Origins `json:"allowed_origins"`
	KeyVersion string       `json:"key_version"`
	Revoked    bool         `json:"revoked"`
}

type modelFile struct {
	Metadata   modelMeta `json:"metadata"`
	Nonce      []byte    `json:"nonce"`
	Ciphertext []byte    `json:"ciphertext"`
}

func openModel(c vault.Config, f flaws) (Vault, error) {
	keys, err := keyring.Open(c.KeyDir)
	if err != nil {
		return nil, err
	}
	m := &model{flaws: f, c: c, keys: keys, lock: flock.New(filepath.Join(c.Dir, ".profile-store.lock")),
		fences: map[string]bool{}, shared: map[string][]byte{}}
	if ok, err := m.lock.TryLock(); !m.noLock && (!ok || err != nil) {
		return nil, errors.Join(errors.New("locked"), err)
	}
	if err := m.check(); err != nil {
		return nil, errors.Join(err, m.lock.Close())
	}
	return m, nil
}

func (m *model) check() error {
	if info, err := os.Stat(m.c.Dir); !m.skipsStrangers && (err != nil || info.Mode().Perm() != 0o700) {
		return errors.Join(errors.New("directory"), err)
	}
	entries, err := os.ReadDir(m.c.Dir)
	if err != nil {
		return err
	}
	ids := map[string]bool{}
	for _, e := range entries {
		path := filepath.Join(m.c.Dir, e.Name())
		info, err := e.Info()
		switch {
		case err != nil:
			return err
		case e.Name() == ".profile-store.lock":
			continue
		case strings.HasPrefix(e.Name(), ".profile-stage-"):
			if !m.keepsStaging {
				if err := os.Remove(path); err != nil {
					return err
				}
			}
			continue
		case !strings.HasSuffix(e.Name(), ".profile") || info.Mode() != 0o600 && !m.publicMode:
			if m.skipsStrangers {
				continue
			}
			return fmt.Errorf("stranger %s", e.Name())
		}
		f, err := m.decode(path)
		if err == nil {
			_, err = m.decrypt(f)
		}
		if m.skipsVerify {
			continue
		}
		if err != nil {
			return err
		}
		if !m.skipsStrangers && (m.path(f.Metadata.Ref) != path || ids[f.Metadata.ProfileID]) {
			return errors.New("misnamed or duplicate")
		}
		ids[f.Metadata.ProfileID] = true
	}
	return nil
}

func (m *model) path(ref string) string {
	if m.refInName {
		return filepath.Join(m.c.Dir, ref+".profile")
	}
	b := bench{config: m.c}
	return b.path(vault.Record{Ref: ref})
}

func (m *model) decode(path string) (modelFile, error) {
	var f modelFile
	data, err := os.ReadFile(path)
	if err != nil || len(data) > 90<<20 {
		return f, errors.Join(errors.New("unreadable or too large"), err)
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, err
	}
	if again, err := json.Marshal(f); err != nil || string(again) != string(data) || len(f.Nonce) != 12 || f.Metadata.Format != 1 {
		return f, errors.Join(errors.New("malformed"), err)
	}
	return f, nil
}

func (m *model) aead(version string) (cipher.AEAD, error) {
	key, err := m.keys.Key(version)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key.Reveal())
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (m *model) aad(meta modelMeta) []byte {
	if m.noAAD {
		return nil
	}
	b, _ := json.Marshal(meta) // cannot fail for this type
	return b
}

func (m *model) decrypt(f modelFile) ([]byte, error) {
	if m.plaintext {
		return f.Ciphertext, nil
	}
	a, err := m.aead(f.Metadata.KeyVersion)
	if err != nil {
		return nil, err
	}
	return a.Open(nil, f.Nonce, f.Ciphertext, m.aad(f.Metadata))
}

func (m *model) write(meta modelMeta, plaintext []byte) error {
	a, err := m.aead(meta.KeyVersion)
	if err != nil {
		return err
	}
	f := modelFile{Metadata: meta, Nonce: make([]byte, 12)}
	if !m.sameNonce {
		rand.Read(f.Nonce)
	}
	f.Ciphertext = a.Seal(nil, f.Nonce, plaintext, m.aad(meta))
	if m.plaintext {
		f.Ciphertext = append([]byte{}, plaintext...)
	}
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	mode, path := os.FileMode(0o600), m.path(meta.Ref)
	if m.publicMode {
		mode = 0o644
	}
	if m.writeInPlace {
		return os.WriteFile(path, data, mode)
	}
	staged := filepath.Join(m.c.Dir, ".profile-stage-"+ident.Hex(4))
	return errors.Join(os.WriteFile(staged, data, mode), os.Rename(staged, path))
}

// each runs f on every readable file until it returns true.
func (m *model) each(f func(modelFile) bool) {
	paths, _ := filepath.Glob(filepath.Join(m.c.Dir, "*.profile"))
	for _, p := range paths {
		if x, err := m.decode(p); err == nil && f(x) {
			return
		}
	}
}

func (m *model) record(f modelFile) vault.Record {
	x := f.Metadata
	return vault.Record{Scope: caller.Scope{Tenant: x.Tenant, Principal: x.Principal}, ProfileID: x.ProfileID, Ref: x.Ref,
		Origins: x.Origins, KeyVersion: x.KeyVersion, Revoked: x.Revoked || m.fences[x.Ref]}
}

func (m *model) exact(s caller.Scope, id, ref string) (found modelFile, err error) {
	err = fault.New(fault.ProfileUnavailable, "absent")
	m.each(func(f modelFile) bool {
		r := m.record(f)
		if r.Ref == ref && (m.foreignVisible || r.ProfileID == id && r.Scope == s) {
			found, err = f, nil
		}
		return err == nil
	})
	return found, err
}

func (m *model) live(s caller.Scope, id, ref string) (modelFile, error) {
	f, err := m.exact(s, id, ref)
	if err == nil && m.record(f).Revoked && !m.loadsFenced {
		err = fault.New(fault.ProfileUnavailable, "revoked")
	}
	return f, err
}

func (m *model) Create(s caller.Scope, id string, o site.Origins) (vault.Record, error) {
	unique := map[site.Origin]bool{}
	for _, x := range o {
		unique[x] = x.Host() != ""
	}
	bad := !ident.Valid(id) || !s.Valid() || strings.ToValidUTF8(s.Principal, "") != s.Principal || len(o) == 0 || len(unique) != len(o) || unique[site.Origin{}]
	if _, zero := unique[site.Origin{}]; (bad || zero) && !m.noBounds {
		return vault.Record{}, fault.New(fault.MalformedRequest, "bounds")
	}
	var found *vault.Record
	m.each(func(f modelFile) bool {
		if f.Metadata.ProfileID == id {
			r := m.record(f)
			found = &r
		}
		return found != nil
	})
	switch {
	case found == nil || m.newRefOnRepeat:
	case (found.Scope != s || !found.Origins.Equal(o)) && !m.conflictIgnored:
		return vault.Record{}, fault.New(fault.Conflict, "conflict")
	default:
		return *found, nil
	}
	o = slices.SortedFunc(slices.Values(o), func(a, b site.Origin) int { return strings.Compare(a.Host(), b.Host()) })
	meta := modelMeta{Format: 1, ProfileID: id, Tenant: s.Tenant, Principal: s.Principal, Ref: ident.Token(32), Origins: o, KeyVersion: m.keys.Current()}
	return m.record(modelFile{Metadata: meta}), m.write(meta, nil)
}

func (m *model) Lookup(s caller.Scope, id, ref string) (vault.Record, error) {
	f, err := m.exact(s, id, ref)
	if err != nil {
		return vault.Record{}, err
	}
	return m.record(f), nil
}

func (m *model) Load(s caller.Scope, id, ref string) (secret.Bytes, error) {
	f, err := m.live(s, id, ref)
	if err != nil {
		return secret.Bytes{}, err
	}
	if kept, ok := m.shared[ref]; ok {
		return secret.NewBytes(kept), nil
	}
	b, err := m.decrypt(f)
	if m.sharesBytes {
		m.shared[ref] = b
	}
	return secret.NewBytes(b), err
}

func (m *model) Seal(s caller.Scope, id, ref string, p secret.Bytes) error {
	if (p.Len() == 0 && !m.emptySeal) || p.Len() > vault.MaxPlaintext {
		return fault.New(fault.MalformedRequest, "bounds")
	}
	f, err := m.live(s, id, ref)
	if err != nil {
		return err
	}
	delete(m.shared, ref)
	if !m.oldKeyForSeal {
		f.Metadata.KeyVersion = m.keys.Current()
	}
	return m.write(f.Metadata, p.Reveal())
}

func (m *model) Revoke(s caller.Scope, id, ref string) error {
	f, err := m.exact(s, id, ref)
	if err != nil {
		return err
	}
	if m.fenceInMemory {
		m.fences[ref] = true
		return nil
	}
	f.Metadata.Revoked, f.Metadata.KeyVersion = true, m.keys.Current()
	return m.write(f.Metadata, nil)
}

func (m *model) Delete(s caller.Scope, id, ref string) error {
	taken := false
	m.each(func(f modelFile) bool {
		taken = taken || f.Metadata.ProfileID == id || f.Metadata.Ref == ref
		return taken
	})
	if !taken {
		return nil
	}
	f, err := m.exact(s, id, ref)
	switch {
	case err != nil:
		return err
	case !m.record(f).Revoked && !m.deleteUnfenced:
		return fault.New(fault.Conflict, "not revoked")
	case m.deleteKeepsFile:
		return os.Rename(m.path(ref), m.path(ref)+".deleted")
	}
	return os.Remove(m.path(ref))
}

func (m *model) Rotate(ctx context.Context) (n int, err error) {
	m.each(func(f modelFile) bool {
		if f.Metadata.KeyVersion == m.keys.Current() {
			return false
		}
		if err = ctx.Err(); err != nil && !m.rotateIgnoresContext {
			return true
		}
		var p []byte
		if p, err = m.decrypt(f); err != nil {
			return true
		}
		if f.Metadata.KeyVersion = m.keys.Current(); !m.rotateForgets {
			err = m.write(f.Metadata, p)
		}
		n++
		return err != nil
	})
	return n, err
}

func (m *model) Close() error { return m.lock.Close() }
