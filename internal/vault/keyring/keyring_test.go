package keyring

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/privatefs"
)

// KEY-01, STORE-05: a generated keyring opens, holds one random key of 256
// bits, is private, and is never overwritten.
func TestGenerate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if err := Generate(dir); err != nil {
		t.Fatal(err)
	}
	k, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	key, err := k.Key(k.Current())
	if err != nil || key.Len() != 32 {
		t.Fatalf("key of %d bytes, %v", key.Len(), err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", info.Mode(), err)
	}
	for _, name := range []string{"current", k.Current() + ".key"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := Generate(dir); !errors.Is(err, os.ErrExist) {
		t.Errorf("over an existing keyring: %v", err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := again.Key(k.Current()); err != nil || !bytes.Equal(same.Reveal(), key.Reveal()) {
		t.Error("the refused Generate changed the key")
	}
	other := filepath.Join(t.TempDir(), "keys")
	if err := Generate(other); err != nil {
		t.Fatal(err)
	}
	if o, err := Open(other); err != nil {
		t.Error(err)
	} else if x, _ := o.Key(o.Current()); bytes.Equal(x.Reveal(), key.Reveal()) {
		t.Error("two generated keyrings have the same key")
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
		t.Errorf("beside the keyring there is %v, %v", entries, err)
	}
	if err := Generate("keys"); err == nil {
		t.Error("a relative path is accepted")
	}
	if err := Generate(filepath.Join(t.TempDir(), "missing", "keys")); err == nil {
		t.Error("a missing parent is accepted")
	}
}

func encoded(b byte, n int) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, n))
}

// keys makes a good keyring with the versions a and b, b current.
func keys(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a.key"), encoded(1, 32))
	write(t, filepath.Join(dir, "b.key"), encoded(2, 32)+"\n")
	write(t, filepath.Join(dir, "current"), "b\n")
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	k, err := Open(keys(t))
	if err != nil {
		t.Fatal(err)
	}
	if k.Current() != "b" {
		t.Errorf("current is %q", k.Current())
	}
	for version, b := range map[string]byte{"a": 1, "b": 2} {
		key, err := k.Key(version)
		if err != nil || !bytes.Equal(key.Reveal(), bytes.Repeat([]byte{b}, 32)) {
			t.Errorf("key %s: %v", version, err)
		}
		key.Wipe() // the caller's copy only
		if again, _ := k.Key(version); again.Reveal()[0] != b {
			t.Errorf("wiping a copy of %s wiped the keyring", version)
		}
	}
	for _, version := range []string{"", "c", "current", "../keys/a", "A"} {
		if key, err := k.Key(version); err == nil || key.Len() != 0 {
			t.Errorf("there is a key %q", version)
		}
	}
}

// KEY-02: each of these stops the start.
func TestOpenRefuses(t *testing.T) {
	file := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { write(t, filepath.Join(dir, name), text) }
	}
	tests := map[string]func(t *testing.T, dir string){
		"an unknown file":                 file("README", "hello"),
		"a hidden file":                   file(".hidden", ""),
		"a key file without a version":    file(".key", encoded(3, 32)),
		"a version with a space":          file("a b.key", encoded(3, 32)),
		"a version that begins with -":    file("-a.key", encoded(3, 32)),
		"a version of 129 characters":     file(strings.Repeat("v", 129)+".key", encoded(3, 32)),
		"a key of 31 bytes":               file("c.key", encoded(3, 31)),
		"a key of 33 bytes":               file("c.key", encoded(3, 33)),
		"an empty key":                    file("c.key", ""),
		"a key that is not base64":        file("c.key", strings.Repeat("!", 44)),
		"a key in base64url":              file("c.key", strings.ReplaceAll(encoded(0xff, 32), "/", "_")),
		"a key with spare bits":           file("c.key", strings.TrimSuffix(encoded(3, 32), "M=")+"N="),
		"a key with two newlines":         file("c.key", encoded(3, 32)+"\n\n"),
		"a key file over 4096 bytes":      file("c.key", encoded(3, 32)+strings.Repeat("\n", 4096)),
		"two versions of one key":         file("c.key", encoded(1, 32)),
		"a current version without a key": file("current", "c\n"),
		"an empty current":                file("current", ""),
		"a path as current":               file("current", "../keys/a"),
		"no current": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "current")); err != nil {
				t.Fatal(err)
			}
		},
		"a key that others may read": func(t *testing.T, dir string) {
			if err := os.Chmod(filepath.Join(dir, "a.key"), 0o604); err != nil {
				t.Fatal(err)
			}
		},
		"a current that the group may write": func(t *testing.T, dir string) {
			if err := os.Chmod(filepath.Join(dir, "current"), 0o620); err != nil {
				t.Fatal(err)
			}
		},
		"a directory that others may list": func(t *testing.T, dir string) {
			if err := os.Chmod(dir, 0o701); err != nil {
				t.Fatal(err)
			}
		},
		"a symbolic link to a key": func(t *testing.T, dir string) {
			target := filepath.Join(t.TempDir(), "c.key")
			write(t, target, encoded(3, 32))
			if err := os.Symlink(target, filepath.Join(dir, "c.key")); err != nil {
				t.Fatal(err)
			}
		},
		"a symbolic link inside the directory": func(t *testing.T, dir string) {
			err := errors.Join(os.Remove(filepath.Join(dir, "current")), os.Symlink("a.key", filepath.Join(dir, "current")))
			if err != nil {
				t.Fatal(err)
			}
		},
		"a directory as key": func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "c.key"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"a pipe as key": func(t *testing.T, dir string) {
			if err := syscall.Mkfifo(filepath.Join(dir, "c.key"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	}
	for what, damage := range tests {
		t.Run(what, func(t *testing.T) {
			dir := keys(t)
			damage(t, dir)
			if _, err := Open(dir); err == nil {
				t.Error("the keyring opens")
			} else if strings.Contains(err.Error(), encoded(3, 32)[:8]) || strings.Contains(err.Error(), encoded(1, 32)[:8]) {
				t.Errorf("the error holds key text: %v", err)
			}
		})
	}
	dir := keys(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for what, path := range map[string]string{
		"a symbolic link": link, "a relative path": "keys", "a file": filepath.Join(dir, "a.key"), "nothing": filepath.Join(dir, "x"),
	} {
		if _, err := Open(path); err == nil {
			t.Errorf("%s opens as a keyring", what)
		}
	}
}

// KEY-02: a file of another user is refused. Only root can make one.
func TestForeignOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		// A file that exists on every system and is root's.
		if _, err := privatefs.ReadSecretFile("/etc/passwd"); err == nil || !strings.Contains(err.Error(), "belong") {
			t.Errorf("a file of root's: %v", err)
		}
		return
	}
	dir := keys(t)
	if err := os.Chown(filepath.Join(dir, "a.key"), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "belong") {
		t.Errorf("a key of another user: %v", err)
	}
}
