package privatefs

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// KEY-01: what a credential file may be.
func TestReadSecretFile(t *testing.T) {
	dir := t.TempDir()
	good := strings.Repeat("s", 32)
	tests := []struct {
		what, text string
		ok         bool
	}{
		{"the shortest", good, true},
		{"the longest", strings.Repeat("~", 512), true},
		{"one with white space around it", " \n" + good + "\r\n", true},
		{"too short", strings.Repeat("s", 31), false},
		{"too long", strings.Repeat("s", 513), false},
		{"empty", "", false},
		{"a space inside", good + " " + good, false},
		{"a second line", good + "\n" + good, false},
		{"a control character", good + "\x00", false},
		{"not ASCII", good + "é", false},
		{"over 4096 bytes", good + strings.Repeat("\n", 4096), false},
	}
	for _, x := range tests {
		path := filepath.Join(dir, "secret")
		write(t, path, x.text)
		s, err := ReadSecretFile(path)
		if (err == nil) != x.ok || x.ok && s.Reveal() != strings.TrimSpace(x.text) || !x.ok && !s.Empty() {
			t.Errorf("%s: %v", x.what, err)
		}
		if err != nil && strings.Contains(err.Error(), "sss") {
			t.Errorf("%s: the error holds the secret: %v", x.what, err)
		}
	}
	path := filepath.Join(dir, "secret")
	write(t, path, good)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for what, p := range map[string]string{"group access": path, "a symbolic link": link, "a directory": dir, "nothing": filepath.Join(dir, "x"), "a relative path": "secret"} {
		if _, err := ReadSecretFile(p); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

// KEY-01: a generated credential is readable by its reader, random, private,
// and never overwrites another.
func TestWriteSecretFile(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := errors.Join(WriteSecretFile(a), WriteSecretFile(b)); err != nil {
		t.Fatal(err)
	}
	x, err1 := ReadSecretFile(a)
	y, err2 := ReadSecretFile(b)
	if err1 != nil || err2 != nil || len(x.Reveal()) != 43 || x.Equal(y.Reveal()) {
		t.Errorf("%d characters, %v, %v", len(x.Reveal()), err1, err2)
	}
	if raw, err := base64.RawURLEncoding.DecodeString(x.Reveal()); err != nil || len(raw) != 32 {
		t.Errorf("not base64url of 32 bytes: %v", err)
	}
	if info, err := os.Stat(a); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := WriteSecretFile(a); !errors.Is(err, os.ErrExist) {
		t.Errorf("over an existing file: %v", err)
	}
	if again, err := ReadSecretFile(a); err != nil || !again.Equal(x.Reveal()) {
		t.Error("the refused write changed the file")
	}
	if err := WriteSecretFile("a"); err == nil {
		t.Error("a relative path is accepted")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}
