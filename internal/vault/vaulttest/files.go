package vaulttest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/vault"
)

// withProfile sets up a vault with one sealed profile and runs f on it.
func withProfile(open Open, dir, text string, f func(*bench, vault.Record) error) error {
	b, err := setUp(open, dir)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	r, err := b.profile(text)
	if err != nil {
		return err
	}
	return f(b, r)
}

func independentOpen(open Open, dir string) error {
	return withProfile(open, dir, "session", func(b *bench, r vault.Record) error {
		meta, plaintext, err := b.decrypt(r)
		if err != nil {
			return err
		}
		if string(plaintext) != "session" {
			return fmt.Errorf("the file holds %d other bytes", len(plaintext))
		}
		want := map[string]any{
			"format": 1.0, "profile_id": r.ProfileID, "tenant_id": "acme", "principal_id": "alice",
			"provider_ref": r.Ref, "allowed_origins": []any{wiki}, "key_version": "k1", "revoked": false,
		}
		got, err1 := json.Marshal(meta)
		wanted, err2 := json.Marshal(want)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if !bytes.Equal(got, wanted) {
			return fmt.Errorf("the metadata is %s, want %s", got, wanted)
		}
		return nil
	})
}

func freshNonce(open Open, dir string) error {
	return withProfile(open, dir, "", func(b *bench, r vault.Record) error {
		seen := map[string]bool{}
		for i := range 20 {
			f, err := b.file(r)
			if err != nil {
				return err
			}
			if len(f.Nonce) != 12 || seen[string(f.Nonce)] {
				return fmt.Errorf("nonce %d is repeated or has %d bytes", i, len(f.Nonce))
			}
			seen[string(f.Nonce)] = true
			if err := b.Seal(alice, r.ProfileID, r.Ref, sealable("the same session")); err != nil {
				return err
			}
			if i%5 == 0 {
				if err := b.restart(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func nothingInClear(open Open, dir string) error {
	const text = "correct-horse-battery-staple"
	return withProfile(open, dir, text, func(b *bench, r vault.Record) error {
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if strings.Contains(path, r.Ref) {
				return errors.New("a file name holds the reference")
			}
			data, err := os.ReadFile(path)
			if err == nil && (bytes.Contains(data, []byte(text)) || bytes.Contains(data, []byte(encoded[:30]))) {
				return fmt.Errorf("%s holds the session in clear", d.Name())
			}
			return err
		})
	})
}

func privateFiles(open Open, dir string) error {
	return withProfile(open, dir, "session", func(b *bench, r vault.Record) error {
		if _, err := os.Stat(b.path(r)); err != nil {
			return fmt.Errorf("the file is not named after the hash of the reference: %w", err)
		}
		return filepath.WalkDir(b.config.Dir, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				return fmt.Errorf("%s has mode %v", d.Name(), info.Mode())
			}
			return err
		})
	})
}

func metadataBound(open Open, dir string) error {
	return withProfile(open, dir, "session", func(b *bench, r vault.Record) error {
		original, err := os.ReadFile(b.path(r))
		if err != nil {
			return err
		}
		// Both keys exist, so that only the tag can tell the versions apart.
		if err := b.addKey("k2"); err != nil {
			return err
		}
		for what, swap := range map[string][2]string{
			"profile":     {r.ProfileID, ident.New()},
			"tenant":      {`"tenant_id":"acme"`, `"tenant_id":"evil"`},
			"principal":   {`"principal_id":"alice"`, `"principal_id":"mallory"`},
			"origins":     {wiki, mail},
			"key version": {`"k1"`, `"k2"`},
			"fence":       {`"revoked":false`, `"revoked":true`},
			"format":      {`"format":1`, `"format":2`},
		} {
			changed := strings.Replace(string(original), swap[0], swap[1], 1)
			if changed == string(original) {
				return fmt.Errorf("%s is not in the file as %s", what, swap[0])
			}
			if err := os.WriteFile(b.path(r), []byte(changed), 0o600); err != nil {
				return err
			}
			if err := b.refuses("a changed " + what); err != nil {
				return err
			}
		}
		// The reference too, under the file name that belongs to it.
		moved := r
		moved.Ref = ident.Token(32)
		changed := strings.Replace(string(original), r.Ref, moved.Ref, 1)
		if err := errors.Join(os.Remove(b.path(r)), os.WriteFile(b.path(moved), []byte(changed), 0o600)); err != nil {
			return err
		}
		if err := b.refuses("a changed reference"); err != nil {
			return err
		}
		// The original still opens: it was the changes that were refused.
		if err := errors.Join(os.Remove(b.path(moved)), os.WriteFile(b.path(r), original, 0o600), b.restart()); err != nil {
			return err
		}
		return holds(b, r, "session")
	})
}

func damaged(open Open, dir string) error {
	return withProfile(open, dir, "session", func(b *bench, r vault.Record) error {
		other, err := b.profile("other session")
		if err != nil {
			return err
		}
		original, err1 := os.ReadFile(b.path(r))
		second, err2 := os.ReadFile(b.path(other))
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		cases := map[string][]byte{
			"an empty file":             {},
			"a file that is not JSON":   []byte("session"),
			"an empty object":           []byte("{}"),
			"null":                      []byte("null"),
			"another profile's file":    second,
			"a trailing byte":           append(slices.Clone(original), ' '),
			"a second envelope":         append(slices.Clone(original), original...),
			"an unknown member":         []byte(strings.Replace(string(original), `{"metadata"`, `{"x":1,"metadata"`, 1)),
			"a repeated member":         []byte(strings.Replace(string(original), `"nonce"`, `"nonce":"AAAAAAAAAAAAAAAA","nonce"`, 1)),
			"a member in capitals":      []byte(strings.Replace(string(original), `"nonce"`, `"Nonce"`, 1)),
			"an envelope over 90 MiB":   slices.Concat(original, bytes.Repeat([]byte(" "), 90<<20)),
			"another spelling of it":    []byte(strings.Replace(string(original), `"revoked":false`, `"revoked": false`, 1)),
			"the metadata of the other": mixed(original, second),
		}
		for _, n := range []int{1, 2, len(original) / 2, len(original) - 1} {
			cases[fmt.Sprintf("a file cut by %d bytes", n)] = original[:len(original)-n]
		}
		// One flipped bit in each part of the file.
		for _, part := range []string{"metadata", "nonce", "ciphertext"} {
			at := bytes.Index(original, []byte(`"`+part+`":`)) + len(part) + 6
			flipped := slices.Clone(original)
			flipped[at] ^= 1
			cases["a flipped bit in "+part] = flipped
		}
		tag := slices.Clone(original)
		i := bytes.LastIndexByte(tag, '"') - 8
		tag[i] = map[bool]byte{true: 'B', false: 'A'}[tag[i] == 'A']
		cases["a changed tag"] = tag
		for what, data := range cases {
			if err := os.WriteFile(b.path(r), data, 0o600); err != nil {
				return err
			}
			if err := b.refuses(what); err != nil {
				return err
			}
		}
		if err := errors.Join(os.WriteFile(b.path(r), original, 0o600), b.restart()); err != nil {
			return err
		}
		return errors.Join(holds(b, r, "session"), holds(b, other, "other session"))
	})
}

// mixed has the metadata of a and the seal of b.
func mixed(a, b []byte) []byte {
	cut := []byte(`,"nonce"`)
	return slices.Concat(a[:bytes.Index(a, cut)], b[bytes.Index(b, cut):])
}

func strangers(open Open, dir string) error {
	return withProfile(open, dir, "session", func(b *bench, r vault.Record) error {
		original, err := os.ReadFile(b.path(r))
		if err != nil {
			return err
		}
		// A second, well sealed envelope of the same profile, from a copy of
		// the store in which the profile was made anew.
		twin := filepath.Join(dir, "twin")
		if err := os.Mkdir(twin, 0o700); err != nil {
			return err
		}
		v, err := b.open(vault.Config{Dir: twin, KeyDir: b.config.KeyDir})
		if err != nil {
			return err
		}
		same, err := v.Create(alice, r.ProfileID, origins(wiki))
		if err := errors.Join(err, v.Close()); err != nil {
			return err
		}
		inTwin := *b
		inTwin.config.Dir = twin
		double, err := os.ReadFile(inTwin.path(same))
		if err != nil {
			return err
		}
		for what, x := range map[string]struct {
			path string
			data []byte
			mode os.FileMode
		}{
			"an unknown file":              {filepath.Join(b.config.Dir, "notes.txt"), []byte("hello"), 0o600},
			"a hidden unknown file":        {filepath.Join(b.config.Dir, ".x"), nil, 0o600},
			"an envelope with a bad name":  {filepath.Join(b.config.Dir, "x.profile"), original, 0o600},
			"a second file of the profile": {b.path(same), double, 0o600},
			"an envelope others may read":  {b.path(r), original, 0o644},
		} {
			_ = os.Remove(x.path)
			if err := errors.Join(os.WriteFile(x.path, x.data, 0o600), os.Chmod(x.path, x.mode)); err != nil {
				return err
			}
			if err := b.refuses(what); err != nil {
				return err
			}
			if err := errors.Join(os.Remove(x.path), os.WriteFile(b.path(r), original, 0o600)); err != nil {
				return err
			}
		}
		misnamed := filepath.Join(b.config.Dir, strings.Repeat("0", 64)+".profile")
		if err := os.Rename(b.path(r), misnamed); err != nil {
			return err
		}
		if err := b.refuses("an envelope with the name of another"); err != nil {
			return err
		}
		if err := os.Rename(misnamed, b.path(r)); err != nil {
			return err
		}
		elsewhere := filepath.Join(dir, "elsewhere")
		if err := errors.Join(os.Rename(b.path(r), elsewhere), os.Symlink(elsewhere, b.path(r))); err != nil {
			return err
		}
		if err := b.refuses("a symbolic link to an envelope"); err != nil {
			return err
		}
		if err := errors.Join(os.Rename(elsewhere, b.path(r)), os.Chmod(b.config.Dir, 0o750)); err != nil {
			return err
		}
		if err := b.refuses("a directory that its group may read"); err != nil {
			return err
		}
		if err := errors.Join(os.Chmod(b.config.Dir, 0o700), b.restart()); err != nil {
			return err
		}
		return holds(b, r, "session")
	})
}

func staleStaging(open Open, dir string) error {
	return withProfile(open, dir, "session", func(b *bench, r vault.Record) error {
		stale := filepath.Join(b.config.Dir, ".profile-stage-0123456789abcdef")
		if err := errors.Join(os.WriteFile(stale, []byte(`{"metadata`), 0o600), b.restart()); err != nil {
			return err
		}
		return errors.Join(countFiles(b, 1), holds(b, r, "session"))
	})
}

func oneProcess(open Open, dir string) error {
	return withProfile(open, dir, "session", func(b *bench, r vault.Record) error {
		if v, err := b.open(b.config); err == nil {
			return errors.Join(errors.New("a second vault opened the same directory"), v.Close())
		}
		// The refused one left the first one in possession.
		if v, err := b.open(b.config); err == nil {
			return errors.Join(errors.New("a refused open released the lock"), v.Close())
		}
		return errors.Join(holds(b, r, "session"), b.restart(), holds(b, r, "session"))
	})
}

func atomicReplace(open Open, dir string) error {
	return withProfile(open, dir, "session", func(b *bench, r vault.Record) error {
		// A second name of the file shows whether the bytes under it change.
		kept := filepath.Join(dir, "kept")
		before, err := os.ReadFile(b.path(r))
		if err := errors.Join(err, os.Link(b.path(r), kept)); err != nil {
			return err
		}
		if err := b.Seal(alice, r.ProfileID, r.Ref, sealable("another session")); err != nil {
			return err
		}
		after, err := os.ReadFile(kept)
		if err != nil || !bytes.Equal(before, after) {
			return fmt.Errorf("the file was written in place: %v", err)
		}
		return errors.Join(countFiles(b, 1), holds(b, r, "another session"))
	})
}
