package vaulttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/vault"
)

func durableFence(open Open, dir string) error {
	return withProfile(open, dir, "session", func(b *bench, r vault.Record) error {
		if err := b.Revoke(alice, r.ProfileID, r.Ref); err != nil {
			return err
		}
		v, err := b.crashed(dir)
		if err != nil {
			return err
		}
		defer func() { _ = v.Close() }()
		if got, err := v.Lookup(alice, r.ProfileID, r.Ref); err != nil || !got.Revoked {
			return fmt.Errorf("after a crash the profile is not revoked: %+v, %v", got, err)
		}
		_, err = v.Load(alice, r.ProfileID, r.Ref)
		return wants("load after a crash", err, fault.ProfileUnavailable)
	})
}

func fenced(open Open, dir string) error {
	return withProfile(open, dir, "session", func(b *bench, r vault.Record) error {
		for range 2 { // repeating it is not an error
			if err := b.Revoke(alice, r.ProfileID, r.Ref); err != nil {
				return err
			}
			_, err := b.Load(alice, r.ProfileID, r.Ref)
			if err := wants("load", err, fault.ProfileUnavailable); err != nil {
				return err
			}
			if err := wants("seal", b.Seal(alice, r.ProfileID, r.Ref, sealable("again")), fault.ProfileUnavailable); err != nil {
				return err
			}
			if got, err := b.Lookup(alice, r.ProfileID, r.Ref); err != nil || !got.Revoked {
				return fmt.Errorf("lookup: %+v, %v", got, err)
			}
			if got, err := b.Create(alice, r.ProfileID, origins(wiki)); err != nil || !got.Revoked || got.Ref != r.Ref {
				return fmt.Errorf("creating it again: %+v, %v", got, err)
			}
			if err := b.restart(); err != nil {
				return err
			}
		}
		meta, plaintext, err := b.decrypt(r)
		if err != nil || meta["revoked"] != true || len(plaintext) != 0 {
			return fmt.Errorf("the file says revoked=%v and holds %d bytes of session: %v", meta["revoked"], len(plaintext), err)
		}
		return nil
	})
}

func deletion(open Open, dir string) error {
	return withProfile(open, dir, "session", func(b *bench, r vault.Record) error {
		if err := wants("delete before revoke", b.Delete(alice, r.ProfileID, r.Ref), fault.Conflict); err != nil {
			return err
		}
		if err := errors.Join(holds(b, r, "session"), b.Revoke(alice, r.ProfileID, r.Ref)); err != nil {
			return err
		}
		for range 2 {
			if err := b.Delete(alice, r.ProfileID, r.Ref); err != nil {
				return err
			}
			if err := countFiles(b, 0); err != nil {
				return err
			}
			_, err := b.Lookup(alice, r.ProfileID, r.Ref)
			if err := wants("lookup", err, fault.ProfileUnavailable); err != nil {
				return err
			}
			if err := b.restart(); err != nil {
				return err
			}
		}
		// The id made anew is another profile; the old reference opens nothing.
		again, err := b.Create(alice, r.ProfileID, origins(wiki))
		if err != nil || again.Ref == r.Ref || again.Revoked {
			return fmt.Errorf("created anew: %+v, %v", again, err)
		}
		_, err = b.Load(alice, r.ProfileID, r.Ref)
		if err := wants("load by the old reference", err, fault.ProfileUnavailable); err != nil {
			return err
		}
		return wants("delete by the old reference", b.Delete(alice, r.ProfileID, r.Ref), fault.ProfileUnavailable)
	})
}

func rotation(open Open, dir string) error {
	return withProfile(open, dir, "session", func(b *bench, r vault.Record) error {
		empty, err := b.profile("")
		if err != nil {
			return err
		}
		gone, err := b.profile("gone")
		if err := errors.Join(err, b.Revoke(alice, gone.ProfileID, gone.Ref)); err != nil {
			return err
		}
		if n, err := b.Rotate(context.Background()); n != 0 || err != nil {
			return fmt.Errorf("rotating to the same key: %d, %v", n, err)
		}
		fresh, err := b.profile("stale")
		if err := errors.Join(err, b.addKey("k2"), b.restart()); err != nil {
			return err
		}
		// A new seal uses the new key; what is current already is not touched.
		if err := b.Seal(alice, fresh.ProfileID, fresh.Ref, sealable("fresh")); err != nil {
			return err
		}
		before, err := os.ReadFile(b.path(fresh))
		if err != nil {
			return err
		}
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		if n, err := b.Rotate(cancelled); n != 0 || err == nil {
			return fmt.Errorf("rotation went on after its context ended: %d, %v", n, err)
		}
		if n, err := b.Rotate(context.Background()); n != 3 || err != nil {
			return fmt.Errorf("rotated %d, %v; want 3", n, err)
		}
		if after, err := os.ReadFile(b.path(fresh)); err != nil || string(after) != string(before) {
			return fmt.Errorf("a seal under the current key was rewritten: %v", err)
		}
		if n, err := b.Rotate(context.Background()); n != 0 || err != nil {
			return fmt.Errorf("rotated again %d, %v; want 0", n, err)
		}
		if err := errors.Join(os.Remove(filepath.Join(b.config.KeyDir, "k1.key")), b.restart()); err != nil {
			return err
		}
		for _, x := range []vault.Record{r, empty, gone, fresh} {
			if meta, _, err := b.decrypt(x); err != nil || meta["key_version"] != "k2" {
				return fmt.Errorf("the file names key %v: %v", meta["key_version"], err)
			}
			if got, err := b.Lookup(alice, x.ProfileID, x.Ref); err != nil || got.KeyVersion != "k2" {
				return fmt.Errorf("the record names key %q: %v", got.KeyVersion, err)
			}
		}
		_, err = b.Load(alice, gone.ProfileID, gone.Ref)
		return errors.Join(holds(b, r, "session"), holds(b, empty, ""), holds(b, fresh, "fresh"),
			wants("load of a revoked profile after rotation", err, fault.ProfileUnavailable))
	})
}

func missingKey(open Open, dir string) error {
	return withProfile(open, dir, "session", func(b *bench, r vault.Record) error {
		old := filepath.Join(b.config.KeyDir, "k1.key")
		key, err := os.ReadFile(old)
		if err := errors.Join(err, b.addKey("k2"), os.Remove(old)); err != nil {
			return err
		}
		if err := b.refuses("an envelope whose key is missing"); err != nil {
			return err
		}
		// Another key under the old name is as good as none.
		wrong, err := os.ReadFile(filepath.Join(b.config.KeyDir, "k2.key"))
		if err := errors.Join(err, os.WriteFile(old, wrong, 0o600), os.Remove(filepath.Join(b.config.KeyDir, "k2.key")),
			os.WriteFile(filepath.Join(b.config.KeyDir, "current"), []byte("k1"), 0o600)); err != nil {
			return err
		}
		if err := b.refuses("an envelope whose key was swapped"); err != nil {
			return err
		}
		if err := errors.Join(os.WriteFile(old, key, 0o600), b.restart()); err != nil {
			return err
		}
		return holds(b, r, "session")
	})
}
