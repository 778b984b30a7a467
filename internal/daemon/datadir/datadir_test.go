package datadir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/daemon/datadir"
)

// KEY-02: the folder is made private, and one that others can enter is refused
// with what to run; nothing is repaired silently.
func TestPrepare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "data")
	if _, err := datadir.Prepare(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o750); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Prepare(path); err == nil || !strings.Contains(err.Error(), "chmod 700 "+path) {
		t.Errorf("a folder that the group can enter: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("it was changed to %v, %v", info.Mode(), err)
	}
	elsewhere, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Chmod(elsewhere, 0o700), os.Symlink(elsewhere, link)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{"link": link, "file": file, "below a file": file + "/data", "too long": "/" + strings.Repeat("x", 100)} {
		if _, err := datadir.Prepare(bad); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// One supervisor at a time.
func TestLock(t *testing.T) {
	dir, err := datadir.Prepare(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Lock(); !errors.Is(err, datadir.ErrRunning) {
		t.Errorf("a second lock: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := dir.Lock()
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	again()
}
