package vaulttest

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/vault"
)

func createTwice(open Open, dir string) error {
	b, err := setUp(open, dir)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	id := ident.New()
	first, err := b.Create(alice, id, origins(wiki, mail))
	if err != nil {
		return err
	}
	if first.ProfileID != id || first.Scope != alice || first.KeyVersion != "k1" || first.Revoked || !first.Origins.Equal(origins(mail, wiki)) {
		return fmt.Errorf("the record is %+v", first)
	}
	for _, again := range []site.Origins{origins(wiki, mail), origins(mail, wiki)} {
		r, err := b.Create(alice, id, again)
		if err != nil || r.Ref != first.Ref {
			return fmt.Errorf("repeated with %v: %v, %w", again, r, errors.Join(err, errors.New("want the first reference")))
		}
		if err := b.restart(); err != nil {
			return err
		}
	}
	other, err := b.profile("")
	if err != nil || other.Ref == first.Ref || len(first.Ref) != 43 {
		return fmt.Errorf("a second profile has reference %q after %q: %v", other.Ref, first.Ref, err)
	}
	return countFiles(b, 2)
}

func createConflict(open Open, dir string) error {
	b, err := setUp(open, dir)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	r, err := b.profile("session")
	if err != nil {
		return err
	}
	for what, f := range map[string]func() (vault.Record, error){
		"another principal": func() (vault.Record, error) { return b.Create(bob, r.ProfileID, origins(wiki)) },
		"another tenant": func() (vault.Record, error) {
			return b.Create(caller.Scope{Tenant: "other", Principal: "alice"}, r.ProfileID, origins(wiki))
		},
		"other origins": func() (vault.Record, error) { return b.Create(alice, r.ProfileID, origins(mail)) },
		"more origins":  func() (vault.Record, error) { return b.Create(alice, r.ProfileID, origins(wiki, mail)) },
	} {
		got, err := f()
		if err := wants(what, err, fault.Conflict); err != nil {
			return err
		}
		if got.Ref != "" {
			return fmt.Errorf("%s: the refusal carries a reference", what)
		}
	}
	return errors.Join(countFiles(b, 1), holds(b, r, "session"))
}

func createBounds(open Open, dir string) error {
	b, err := setUp(open, dir)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	long := strings.Repeat("x", 256)
	for what, f := range map[string]func() (vault.Record, error){
		"no UUID": func() (vault.Record, error) { return b.Create(alice, "../../etc/passwd", origins(wiki)) },
		"no tenant": func() (vault.Record, error) {
			return b.Create(caller.Scope{Principal: "a"}, ident.New(), origins(wiki))
		},
		"no principal": func() (vault.Record, error) { return b.Create(caller.Scope{Tenant: "a"}, ident.New(), origins(wiki)) },
		"long tenant": func() (vault.Record, error) {
			return b.Create(caller.Scope{Tenant: long, Principal: "a"}, ident.New(), origins(wiki))
		},
		"bad UTF-8": func() (vault.Record, error) {
			return b.Create(caller.Scope{Tenant: "a", Principal: "\xff"}, ident.New(), origins(wiki))
		},
		"no origins":   func() (vault.Record, error) { return b.Create(alice, ident.New(), nil) },
		"empty origin": func() (vault.Record, error) { return b.Create(alice, ident.New(), site.Origins{{}}) },
		"origins twice": func() (vault.Record, error) {
			return b.Create(alice, ident.New(), append(origins(wiki), origins(wiki)...))
		},
	} {
		_, err := f()
		if err := wants(what, err, fault.MalformedRequest); err != nil {
			return err
		}
	}
	return countFiles(b, 0)
}

func exactTuple(open Open, dir string) error {
	b, err := setUp(open, dir)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	r, err := b.profile("session")
	if err != nil {
		return err
	}
	other, err := b.profile("other session")
	if err != nil {
		return err
	}
	if got, err := b.Lookup(alice, r.ProfileID, r.Ref); err != nil || got.Ref != r.Ref || got.ProfileID != r.ProfileID {
		return fmt.Errorf("the exact tuple yields %+v, %v", got, err)
	}
	var public string
	for _, x := range foreign(r, other) {
		_, lookup := b.Lookup(x.scope, x.id, x.ref)
		_, load := b.Load(x.scope, x.id, x.ref)
		for _, err := range []error{lookup, load} {
			if err := wants(x.what, err, fault.ProfileUnavailable); err != nil {
				return err
			}
			if p := fault.Public(err).Public; public == "" {
				public = p
			} else if p != public {
				return fmt.Errorf("%s: the answer differs from that for another stranger", x.what)
			}
		}
	}
	return nil
}

// tuple is a name that must open nothing.
type tuple struct {
	what    string
	scope   caller.Scope
	id, ref string
}

func foreign(r, other vault.Record) []tuple {
	return []tuple{
		{"another principal", bob, r.ProfileID, r.Ref},
		{"another tenant", caller.Scope{Tenant: "other", Principal: "alice"}, r.ProfileID, r.Ref},
		{"no scope", caller.Scope{}, r.ProfileID, r.Ref},
		{"another profile of the owner", alice, other.ProfileID, r.Ref},
		{"another reference of the owner", alice, r.ProfileID, other.Ref},
		{"no reference", alice, r.ProfileID, ""},
		{"a path as reference", alice, r.ProfileID, "../keys/k1"},
		{"unknown profile and reference", alice, ident.New(), ident.Token(32)},
	}
}

func foreignChanges(open Open, dir string) error {
	b, err := setUp(open, dir)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	r, err := b.profile("session")
	if err != nil {
		return err
	}
	other, err := b.profile("other session")
	if err != nil {
		return err
	}
	for _, x := range foreign(r, other) {
		if err := wants(x.what+": seal", b.Seal(x.scope, x.id, x.ref, sealable("stolen")), fault.ProfileUnavailable); err != nil {
			return err
		}
		if err := wants(x.what+": revoke", b.Revoke(x.scope, x.id, x.ref), fault.ProfileUnavailable); err != nil {
			return err
		}
		err := b.Delete(x.scope, x.id, x.ref)
		if x.id != r.ProfileID && x.id != other.ProfileID && x.ref != r.Ref && x.ref != other.Ref {
			if err != nil {
				return fmt.Errorf("%s: deleting what is not there: %w", x.what, err)
			}
		} else if err := wants(x.what+": delete", err, fault.ProfileUnavailable); err != nil {
			return err
		}
	}
	return errors.Join(holds(b, r, "session"), holds(b, other, "other session"), b.restart(), holds(b, r, "session"))
}

func roundTrip(open Open, dir string) error {
	b, err := setUp(open, dir)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	r, err := b.profile("")
	if err != nil {
		return err
	}
	if s, err := b.Load(alice, r.ProfileID, r.Ref); err != nil || s.Len() != 0 {
		return fmt.Errorf("a new profile loads %d bytes, %v", s.Len(), err)
	}
	for _, text := range []string{"x", "{\"cookies\":[]}", strings.Repeat("\x00\xff", 1<<19)} {
		if err := b.Seal(alice, r.ProfileID, r.Ref, sealable(text)); err != nil {
			return err
		}
		if err := holds(b, r, text); err != nil {
			return err
		}
		if err := b.restart(); err != nil {
			return err
		}
		if err := holds(b, r, text); err != nil {
			return err
		}
		// What the caller does to the bytes is the caller's affair.
		s, err := b.Load(alice, r.ProfileID, r.Ref)
		if err != nil {
			return err
		}
		s.Wipe()
		if err := holds(b, r, text); err != nil {
			return err
		}
	}
	return nil
}

func sealBounds(open Open, dir string) error {
	b, err := setUp(open, dir)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	r, err := b.profile("good")
	if err != nil {
		return err
	}
	for what, s := range map[string]secret.Bytes{
		"nothing":    {},
		"empty":      secret.NewBytes([]byte{}),
		"over bound": secret.NewBytes(make([]byte, vault.MaxPlaintext+1)),
	} {
		if err := wants(what, b.Seal(alice, r.ProfileID, r.Ref, s), fault.MalformedRequest); err != nil {
			return err
		}
		if err := holds(b, r, "good"); err != nil {
			return fmt.Errorf("after %s: %w", what, err)
		}
	}
	return nil
}

// holds checks that the record is live and loads text.
func holds(b *bench, r vault.Record, text string) error {
	got, err := b.Lookup(r.Scope, r.ProfileID, r.Ref)
	if err != nil || got.Revoked {
		return fmt.Errorf("the profile is revoked or gone: %v", err)
	}
	s, err := b.Load(r.Scope, r.ProfileID, r.Ref)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if string(s.Reveal()) != text {
		return fmt.Errorf("loaded %d bytes that are not the %d sealed last", s.Len(), len(text))
	}
	return nil
}

// countFiles checks how many envelopes there are, and that nothing else is.
func countFiles(b *bench, want int) error {
	files, err := os.ReadDir(b.config.Dir)
	if err != nil {
		return err
	}
	n := 0
	for _, f := range files {
		switch {
		case strings.HasSuffix(f.Name(), ".profile"):
			n++
		case f.Name() != ".profile-store.lock":
			return fmt.Errorf("there is a file %q", f.Name())
		}
	}
	if n != want {
		return fmt.Errorf("there are %d envelopes, want %d", n, want)
	}
	return nil
}
