package sqlite_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// inside says that this process is the one with its own mounts.
const inside = "CHAPERONE_SQLITE_TEST_INSIDE"

// withOwnMounts runs the calling test again, alone, in a user and mount
// namespace of its own, and there calls fn with an empty file system of the
// size in KiB.
func withOwnMounts(t *testing.T, size string, fn func(dir string)) {
	t.Helper()
	if dir := os.Getenv(inside); dir != "" {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+"k,mode=0700"); err != nil {
			t.Fatal(err)
		}
		fn(dir)
		return
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	c.Env = append(os.Environ(), inside+"="+t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
		t.Skip("this machine has no user namespaces")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// A disk that fills up costs nothing that was acknowledged, and the store goes
// on when there is room again.
func TestFullDisk(t *testing.T) {
	withOwnMounts(t, "3000", func(dir string) {
		filler := filepath.Join(dir, "filler")
		if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "data", "chaperone.db")
		s := open(t, path)
		stored := 0
		var err error
		for ; stored < 20000 && err == nil; stored++ {
			err = insert(t, s, profile.Reserve(scope, ident.New(), origins(t), now))
		}
		stored--
		if !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("after %d records: %v, want unavailable", stored, err)
		}
		if n := profiles(t, path); n != stored {
			t.Errorf("%d profiles are there, %d were acknowledged", n, stored)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if err := insert(t, s, profile.Reserve(scope, ident.New(), origins(t), now)); err != nil {
			t.Errorf("with room again: %v", err)
		}
		if n := profiles(t, path); n != stored+1 {
			t.Errorf("%d profiles are there, %d were acknowledged", n, stored+1)
		}
	})
}

// A read-only file system is refused when the store is opened.
func TestReadOnlyDisk(t *testing.T) {
	withOwnMounts(t, "3000", func(dir string) {
		path := filepath.Join(dir, "data", "chaperone.db")
		s, err := openAt(path)
		if err != nil {
			t.Fatal(err)
		}
		fill(t, s, 1)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, filepath.Join(dir, "new", "chaperone.db"), filepath.Join(dir, "data", "new.db")} {
			s, err := openAt(p)
			if err == nil {
				err = errors.Join(errors.New("it was opened"), s.Close())
			}
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: %v, want unavailable", filepath.Base(p), err)
			}
		}
	})
}

// Close, and an Open that fails, leave no file open.
func TestNoFileStaysOpen(t *testing.T) {
	held := func(path string) (names []string) {
		fds, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			if name, err := os.Readlink(fd); err == nil && strings.HasPrefix(name, path) {
				names = append(names, name)
			}
		}
		return names
	}
	path := fresh(t)
	s, err := openAt(path)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, 1)
	if len(held(path)) == 0 {
		t.Error("an open store holds no file: the check sees nothing")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if names := held(path); names != nil {
		t.Errorf("after Close: %v", names)
	}
	path = damaged(t, 4096, true)
	if _, err := openAt(path); err == nil {
		t.Fatal("a corrupt file was opened")
	}
	if names := held(path); names != nil {
		t.Errorf("after a failed Open: %v", names)
	}
}

// profiles counts past the code under test.
func profiles(t *testing.T, path string) (n int) {
	t.Helper()
	db := raw(t, path)
	defer db.Close()
	if err := db.QueryRow("SELECT count(*) FROM browser_profiles").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
