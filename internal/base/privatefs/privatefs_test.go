package privatefs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func open(t *testing.T) (*Dir, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, path
}

// STORE-08: staging, naming and removing, seen from outside.
func TestWrite(t *testing.T) {
	d, path := open(t)
	if err := errors.Join(d.Stage("s1", []byte("one")), d.Link("s1", "name"), d.Remove("s1"), d.Sync()); err != nil {
		t.Fatal(err)
	}
	if err := d.Stage("name", []byte("x")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("staged over a file: %v", err)
	}
	if err := d.Stage("s2", []byte("two")); err != nil {
		t.Fatal(err)
	}
	if err := d.Link("s2", "name"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("linked over a file: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(path, "name")); err != nil || string(got) != "one" {
		t.Errorf("holds %q, %v", got, err)
	}
	if err := d.Rename("s2", "name"); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Read("name", 3); err != nil || string(got) != "two" {
		t.Errorf("holds %q, %v", got, err)
	}
	if _, err := d.Read("name", 2); err == nil {
		t.Error("read more than the bound")
	}
	if info, err := os.Stat(filepath.Join(path, "name")); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if names, err := d.Names(); err != nil || len(names) != 1 || names[0] != "name" {
		t.Errorf("holds %q, %v", names, err)
	}
}

// A directory that is renamed stays the one that was opened, and no name
// leads out of it.
func TestConfined(t *testing.T) {
	d, path := open(t)
	outside := filepath.Join(filepath.Dir(path), "outside")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read("../outside", 10); err == nil {
		t.Error("read a file outside the directory")
	}
	if err := d.Stage("../staged", nil); err == nil {
		t.Error("wrote a file outside the directory")
	}
	moved := path + ".moved"
	if err := errors.Join(os.Rename(path, moved), os.Mkdir(path, 0o700), d.Stage("x", nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(moved, "x")); err != nil {
		t.Error("the file went to another directory of the same name")
	}
}

// CreateFile leaves a whole file or nothing, and never a second one.
func TestCreateFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "secret")
	if err := CreateFile(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := CreateFile(path, []byte("two")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created twice: %v", err)
	}
	if got, err := ReadFile(path, 10); err != nil || string(got) != "one" {
		t.Errorf("holds %q, %v", got, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
	if err := CreateFile("relative", nil); err == nil {
		t.Error("a relative path is accepted")
	}
}
