// Package vault keeps signed-in sessions sealed on disk: one authenticated
// envelope per profile, keys from the keyring only (STORE-01 to STORE-09,
// LIFE-01 to LIFE-03, HCP-03, HCP-04, LEASE-09). It is the only room that
// holds keys and plaintext together.
//
// Metadata is read and every tag is verified once, when the vault is opened;
// from then on the store lock makes this process the only writer, and lookups
// are answered from memory. One file operation runs at a time.
package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/privatefs"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/vault/keyring"
)

// Config says where a vault is. Both directories must exist, be absolute
// paths, belong to this program's user, and be closed to everybody else.
type Config struct {
	Dir    string // the sealed profiles; nothing else may be in it
	KeyDir string // see keyring.Open
}

// Record is what may be known of a sealed profile without opening it.
type Record struct {
	caller.Scope
	ProfileID  string
	Ref        string       // a random capability of 43 characters
	Origins    site.Origins // in the order of their names
	KeyVersion string
	Revoked    bool
}

// Vault is an open store of sealed profiles. Its methods are safe for
// concurrent use and return fault.Errors.
type Vault struct {
	disk disk
	keys *keyring.Keyring
	lock *flock.Flock

	files  sync.Mutex // held for every file operation; taken before index
	broken error      // guarded by files: why nothing may be written or read any more

	index  sync.RWMutex // guards the maps and their entries; never held during I/O
	byID   map[string]*entry
	byRef  map[string]*entry
	closed bool
}

// entry is one profile in memory.
type entry struct {
	meta   metadata // as it is on disk
	nonce  string   // of the envelope on disk: an older copy put back is refused
	fenced bool     // revoked, or about to be
}

// disk is the directory of envelopes; tests make it fail.
type disk interface {
	Names() ([]string, error)
	Read(name string, max int64) ([]byte, error)
	Stage(name string, data []byte) error
	Link(staged, name string) error
	Rename(staged, name string) error
	Remove(name string) error
	Sync() error
	Close() error
}

var errClosed = errors.New("vault: closed")

// lockName is the store lock. Its holder is the only process that touches the
// directory.
const lockName = ".profile-store.lock"

// Open takes the store lock, checks the keys, removes what an interrupted
// write left behind, and opens every envelope. It refuses to start over
// anything that is corrupt, unknown, duplicate, or sealed with a missing key.
func Open(c Config) (*Vault, error) {
	d, err := privatefs.Open(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return open(c, d)
}

func open(c Config, d disk) (*Vault, error) {
	v := &Vault{disk: d, byID: map[string]*entry{}, byRef: map[string]*entry{}}
	v.lock = flock.New(filepath.Join(c.Dir, lockName), flock.SetFlag(syscall.O_CREAT|syscall.O_NOFOLLOW))
	err := v.start(c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("vault: %w", err), v.lock.Close(), d.Close())
	}
	return v, nil
}

func (v *Vault) start(c Config) error {
	locked, err := v.lock.TryLock()
	if err != nil {
		return fmt.Errorf("store lock: %w", err)
	}
	if !locked {
		return errors.New("another process has the store open")
	}
	if v.keys, err = keyring.Open(c.KeyDir); err != nil {
		return err
	}
	return v.load()
}

// Close releases the store. Every later call fails.
func (v *Vault) Close() error {
	v.files.Lock()
	defer v.files.Unlock()
	v.index.Lock()
	defer v.index.Unlock()
	if v.closed {
		return nil
	}
	v.closed = true
	v.broken = errClosed
	clear(v.byID)
	clear(v.byRef)
	return errors.Join(v.disk.Close(), v.lock.Close())
}

// Create makes an empty sealed profile and its reference. Repeating it with
// the same scope and origins, in any order, returns the first record, revoked
// or not (LIFE-01). A profile id that is taken with another scope or other
// origins yields fault.Conflict; an id that is not a UUID, a scope out of
// bounds, or no origins yield fault.MalformedRequest.
func (v *Vault) Create(scope caller.Scope, profileID string, origins site.Origins) (Record, error) {
	meta := metadata{
		Format: format, ProfileID: profileID, Tenant: scope.Tenant, Principal: scope.Principal,
		Ref: ident.Token(refBytes), Origins: sorted(origins),
	}
	if err := meta.valid(); err != nil {
		return Record{}, fault.Wrap(fault.MalformedRequest, "A profile needs a UUID, an owner and 1 to 64 different origins. Nothing was stored.", err)
	}
	v.files.Lock()
	defer v.files.Unlock()
	if v.broken != nil {
		return Record{}, unusable(v.broken)
	}
	if e := v.find(profileID); e != nil {
		if e.meta.scope() != scope || !e.meta.Origins.Equal(origins) {
			return Record{}, fault.New(fault.Conflict, "This profile id is in use with another owner or other origins. Nothing was changed.")
		}
		return v.record(e), nil
	}
	meta.KeyVersion = v.keys.Current()
	nonce, err := v.write(meta, nil, false)
	if err != nil {
		return Record{}, err
	}
	e := &entry{meta: meta, nonce: nonce}
	v.index.Lock()
	v.byID[meta.ProfileID], v.byRef[meta.Ref] = e, e
	v.index.Unlock()
	return v.record(e), nil
}

// Lookup returns the record of exactly this owner, profile and reference. Any
// other combination yields fault.ProfileUnavailable, the same for a foreign
// profile as for none (HCP-04). It reads no file.
func (v *Vault) Lookup(scope caller.Scope, profileID, ref string) (Record, error) {
	e, err := v.exact(scope, profileID, ref)
	if err != nil {
		return Record{}, err
	}
	return v.record(e), nil
}

// Load opens the seal. The bytes are the caller's to wipe; there are none
// when nothing has been sealed yet. A revoked profile yields
// fault.ProfileUnavailable.
func (v *Vault) Load(scope caller.Scope, profileID, ref string) (secret.Bytes, error) {
	v.files.Lock()
	defer v.files.Unlock()
	e, err := v.live(scope, profileID, ref)
	if err != nil {
		return secret.Bytes{}, err
	}
	return v.read(e)
}

// Seal replaces the session of the profile. Empty plaintext and plaintext
// over MaxPlaintext bytes yield fault.MalformedRequest, a revoked profile
// fault.ProfileUnavailable. When it fails the earlier seal is still there,
// unless the new one is.
func (v *Vault) Seal(scope caller.Scope, profileID, ref string, plaintext secret.Bytes) error {
	if plaintext.Len() == 0 || plaintext.Len() > MaxPlaintext {
		return fault.New(fault.MalformedRequest, "A session to seal has between 1 byte and 64 MiB. The earlier seal was kept.")
	}
	v.files.Lock()
	defer v.files.Unlock()
	e, err := v.live(scope, profileID, ref)
	if err != nil {
		return err
	}
	meta := e.meta
	meta.KeyVersion = v.keys.Current()
	return v.replace(e, meta, plaintext.Reveal())
}

// Revoke fences the profile for good: from the moment it is called nothing
// is loaded or sealed, and when it returns nil the fence is on disk and the
// session is gone from it. Repeating it is not an error. When it fails the
// fence holds in this process and the call must be repeated.
func (v *Vault) Revoke(scope caller.Scope, profileID, ref string) error {
	e, err := v.exact(scope, profileID, ref)
	if err != nil {
		return err
	}
	v.index.Lock()
	e.fenced = true
	v.index.Unlock()
	v.files.Lock()
	defer v.files.Unlock()
	if v.broken != nil {
		return unusable(v.broken)
	}
	if v.find(profileID) != e {
		return absent() // deleted meanwhile
	}
	if e.meta.Revoked {
		return nil
	}
	// No revoked session is ever read again, so the fence needs no decryption
	// and works on a damaged envelope too.
	meta := e.meta
	meta.Revoked, meta.KeyVersion = true, v.keys.Current()
	return v.replace(e, meta, nil)
}

// Delete removes a revoked profile; one that is not revoked yields
// fault.Conflict. Deleting what is not there succeeds, unless the profile id
// or the reference belongs to something else: fault.ProfileUnavailable.
func (v *Vault) Delete(scope caller.Scope, profileID, ref string) error {
	v.files.Lock()
	defer v.files.Unlock()
	if v.broken != nil {
		return unusable(v.broken)
	}
	v.index.RLock()
	_, idTaken := v.byID[profileID]
	_, refTaken := v.byRef[ref]
	v.index.RUnlock()
	if !idTaken && !refTaken {
		return nil
	}
	e, err := v.exact(scope, profileID, ref)
	if err != nil {
		return err
	}
	if !e.meta.Revoked {
		return fault.New(fault.Conflict, "Only a revoked profile can be deleted. Nothing was changed.")
	}
	if err := v.disk.Remove(fileName(ref)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unwritten(err)
	}
	v.index.Lock()
	delete(v.byID, profileID)
	delete(v.byRef, ref)
	v.index.Unlock()
	return v.sync()
}

// Rotate seals every profile that uses an older key again with the current
// one and returns how many it did. It stops at the first failure or when ctx
// ends; the next call goes on with what is left. An old key file may be
// removed after Rotate returned nil (LIFE-03).
func (v *Vault) Rotate(ctx context.Context) (rotated int, err error) {
	v.index.RLock()
	ids, closed := slices.Sorted(maps.Keys(v.byID)), v.closed
	v.index.RUnlock()
	if closed {
		return 0, unusable(errClosed)
	}
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return rotated, err
		}
		done, err := v.rotate(id)
		if err != nil {
			return rotated, err
		}
		if done {
			rotated++
		}
	}
	return rotated, nil
}

func (v *Vault) rotate(profileID string) (bool, error) {
	v.files.Lock()
	defer v.files.Unlock()
	if v.broken != nil {
		return false, unusable(v.broken)
	}
	e := v.find(profileID)
	if e == nil || e.meta.KeyVersion == v.keys.Current() {
		return false, nil
	}
	plaintext, err := v.read(e)
	if err != nil {
		return false, err
	}
	defer plaintext.Wipe()
	meta := e.meta
	meta.KeyVersion = v.keys.Current()
	return true, v.replace(e, meta, plaintext.Reveal())
}

// find is the entry of the profile, or nil.
func (v *Vault) find(profileID string) *entry {
	v.index.RLock()
	defer v.index.RUnlock()
	return v.byID[profileID]
}

func (v *Vault) record(e *entry) Record {
	v.index.RLock()
	defer v.index.RUnlock()
	return Record{
		Scope: e.meta.scope(), ProfileID: e.meta.ProfileID, Ref: e.meta.Ref,
		Origins: slices.Clone(e.meta.Origins), KeyVersion: e.meta.KeyVersion, Revoked: e.fenced,
	}
}

// exact is the entry of exactly this tuple.
func (v *Vault) exact(scope caller.Scope, profileID, ref string) (*entry, error) {
	v.index.RLock()
	defer v.index.RUnlock()
	e := v.byRef[ref]
	if e == nil || e.meta.ProfileID != profileID || e.meta.scope() != scope {
		return nil, absent()
	}
	return e, nil
}

// live is the entry of the tuple if it may be loaded and sealed. The caller
// holds files, so that no fence can be written meanwhile.
func (v *Vault) live(scope caller.Scope, profileID, ref string) (*entry, error) {
	if v.broken != nil {
		return nil, unusable(v.broken)
	}
	e, err := v.exact(scope, profileID, ref)
	if err != nil {
		return nil, err
	}
	v.index.RLock()
	defer v.index.RUnlock()
	if e.fenced {
		return nil, fault.New(fault.ProfileUnavailable, "This profile is revoked. Nothing was opened; sign in to a new one.")
	}
	return e, nil
}

func sorted(o site.Origins) site.Origins {
	o = slices.Clone(o)
	slices.SortFunc(o, func(a, b site.Origin) int { return strings.Compare(a.Host(), b.Host()) })
	return o
}

func absent() error {
	return fault.New(fault.ProfileUnavailable, "There is no such profile. Nothing was opened.")
}

func unwritten(err error) error {
	return fault.Wrap(fault.Internal, "The sealed profile could not be written. What was stored before is intact.", err)
}

func unusable(err error) error {
	return fault.Wrap(fault.Internal, "The store of sealed profiles is closed. Nothing was opened or stored.", err)
}
