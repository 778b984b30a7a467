// Package vaulttest is the contract of a vault (STORE-01 to STORE-09, LIFE-01
// to LIFE-03, HCP-04, LEASE-09, KEY-02). Every check looks at effects that the
// vault does not report itself: the files, opened here with nothing but the
// standard library, and what a second vault makes of a copy of them.
package vaulttest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/vault"
	"github.com/chaperone-agents/chaperone/internal/vault/keyring"
)

// Vault is what the contract is about.
type Vault interface {
	Create(scope caller.Scope, profileID string, origins site.Origins) (vault.Record, error)
	Lookup(scope caller.Scope, profileID, ref string) (vault.Record, error)
	Load(scope caller.Scope, profileID, ref string) (secret.Bytes, error)
	Seal(scope caller.Scope, profileID, ref string, plaintext secret.Bytes) error
	Revoke(scope caller.Scope, profileID, ref string) error
	Delete(scope caller.Scope, profileID, ref string) error
	Rotate(ctx context.Context) (int, error)
	Close() error
}

// Open opens the implementation under test.
type Open func(vault.Config) (Vault, error)

// Check is one clause of the contract. Run returns nil if the implementation
// keeps it, using dir for everything that it stores.
type Check struct {
	Name string
	Run  func(open Open, dir string) error
}

// Run holds an implementation to the whole contract.
func Run(t *testing.T, open Open) {
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(open, t.TempDir()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Checks lists the clauses.
func Checks() []Check {
	return []Check{
		{"LIFE-01 create is idempotent, also after a restart", createTwice},
		{"LIFE-01 create with another scope or other origins conflicts", createConflict},
		{"STORE-07 create refuses what is out of bounds", createBounds},
		{"HCP-04 only the exact tuple is visible", exactTuple},
		{"HCP-04 another scope changes nothing", foreignChanges},
		{"STORE-02 what is sealed is loaded, also after a restart", roundTrip},
		{"STORE-06 empty and oversized sessions are refused", sealBounds},
		{"STORE-04 the envelope opens with the standard library alone", independentOpen},
		{"STORE-01 every seal has a fresh nonce", freshNonce},
		{"STORE-02 no plaintext and no reference is on disk", nothingInClear},
		{"STORE-09 private modes and hashed names", privateFiles},
		{"STORE-01 every metadata field is authenticated", metadataBound},
		{"STORE-09 no start over a damaged envelope", damaged},
		{"STORE-09 no start over unknown, duplicate, misnamed or public files", strangers},
		{"STORE-09 a staged file is removed at start", staleStaging},
		{"STORE-09 one process at a time", oneProcess},
		{"STORE-08 a seal replaces the file, never rewrites it", atomicReplace},
		{"LIFE-02 the fence is on disk before revoke returns", durableFence},
		{"LEASE-09 a fence is for good", fenced},
		{"LIFE-02 delete needs the fence and repeats", deletion},
		{"LIFE-03 rotation moves every seal to the current key", rotation},
		{"KEY-02 no start without the key of an envelope", missingKey},
	}
}

// bench is one vault in one directory with two profiles' identities.
type bench struct {
	Vault
	open   Open
	config vault.Config
}

var (
	alice = caller.Scope{Tenant: "acme", Principal: "alice"}
	bob   = caller.Scope{Tenant: "acme", Principal: "bob"}
)

const (
	wiki = "https://wiki.example.org"
	mail = "https://mail.example.com"
)

func setUp(open Open, dir string) (*bench, error) {
	c := vault.Config{Dir: filepath.Join(dir, "profiles"), KeyDir: filepath.Join(dir, "keys")}
	if err := errors.Join(os.Mkdir(c.Dir, 0o700), keyring.Generate(c.KeyDir)); err != nil {
		return nil, err
	}
	v, err := open(c)
	if err != nil {
		return nil, fmt.Errorf("cannot open an empty vault: %w", err)
	}
	return &bench{Vault: v, open: open, config: c}, nil
}

// restart closes the vault and opens it again.
func (b *bench) restart() error {
	if err := b.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	v, err := b.open(b.config)
	if err != nil {
		return fmt.Errorf("open again: %w", err)
	}
	b.Vault = v
	return nil
}

// refuses closes the vault and reports an error if it opens again.
func (b *bench) refuses(why string) error {
	_ = b.Close()
	v, err := b.open(b.config)
	if err == nil {
		return errors.Join(fmt.Errorf("the vault started over %s", why), v.Close())
	}
	return nil
}

// crashed is a second vault over a copy of the files as they are now: what a
// power cut at this moment would leave.
func (b *bench) crashed(dir string) (Vault, error) {
	c := b.config
	c.Dir = filepath.Join(dir, "copy-"+ident.Hex(4))
	if err := errors.Join(os.Mkdir(c.Dir, 0o700), copyFiles(b.config.Dir, c.Dir)); err != nil {
		return nil, err
	}
	return b.open(c)
}

func copyFiles(from, to string) error {
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, f.Name()), data, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// profile creates a profile of alice's for the wiki and seals text into it
// unless text is empty.
func (b *bench) profile(text string) (vault.Record, error) {
	r, err := b.Create(alice, ident.New(), origins(wiki))
	if err == nil && text != "" {
		err = b.Seal(alice, r.ProfileID, r.Ref, sealable(text))
	}
	return r, err
}

// addKey writes a second key and makes it the current one.
func (b *bench) addKey(version string) error {
	key := base64.StdEncoding.EncodeToString([]byte(ident.Hex(16)))
	return errors.Join(
		os.WriteFile(filepath.Join(b.config.KeyDir, version+".key"), []byte(key), 0o600),
		os.WriteFile(filepath.Join(b.config.KeyDir, "current"), []byte(version), 0o600),
	)
}

func origins(list ...string) site.Origins {
	o, err := site.ParseOrigins(list)
	if err != nil {
		panic(err) // the lists are constants of this package
	}
	return o
}

func sealable(text string) secret.Bytes { return secret.NewBytes([]byte(text)) }

func wants(what string, err error, code fault.Code) error {
	if !fault.Is(err, code) {
		return fmt.Errorf("%s: got %v, want %s", what, err, code)
	}
	return nil
}
