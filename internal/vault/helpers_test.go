package vault

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/vault/keyring"
)

var owner = caller.Scope{Tenant: "acme", Principal: "alice"}

func wikiOrigins() site.Origins {
	o, err := site.ParseOrigins([]string{"https://wiki.example.org"})
	if err != nil {
		panic(err) // the list is a constant
	}
	return o
}

// newConfig makes an empty store and its keyring below dir.
func newConfig(tb testing.TB, dir string) Config {
	tb.Helper()
	c := Config{Dir: filepath.Join(dir, "profiles"), KeyDir: filepath.Join(dir, "keys")}
	if err := os.Mkdir(c.Dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := keyring.Generate(c.KeyDir); err != nil {
		tb.Fatal(err)
	}
	return c
}

func mustOpen(tb testing.TB, c Config) *Vault {
	tb.Helper()
	v, err := Open(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := v.Close(); err != nil {
			tb.Error(err)
		}
	})
	return v
}

func mustCreate(tb testing.TB, v *Vault) Record {
	tb.Helper()
	r, err := v.Create(owner, ident.New(), wikiOrigins())
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func mustSeal(tb testing.TB, v *Vault, r Record, text string) {
	tb.Helper()
	if err := v.Seal(owner, r.ProfileID, r.Ref, secret.NewBytes([]byte(text))); err != nil {
		tb.Fatal(err)
	}
}

// loads is what the profile holds, or the error as text.
func loads(v *Vault, r Record) string {
	s, err := v.Load(owner, r.ProfileID, r.Ref)
	if err != nil {
		return err.Error()
	}
	return string(s.Reveal())
}
