package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chaperone-agents/chaperone/internal/daemon/datadir"
)

// CER-05: a sign-in's address is in no command line, which every user can
// read; the opener gets a file that only its owner can, and that goes away.
func TestOpenURL(t *testing.T) {
	bin, data, out := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "out")
	script := "#!/bin/sh\n{ echo \"$# $1\"; stat -c '%a' \"$1\" \"$(dirname \"$1\")\"; cat \"$1\"; } > " + out + ".new && mv " + out + ".new " + out + "\n"
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":9")
	const address = `http://localhost:8788/authentication/x#capability"><b>&`
	done, ok := openURL(data, address)
	if !ok {
		t.Fatal("nothing was opened")
	}
	var got string
	for deadline := time.Now().Add(10 * time.Second); got == ""; {
		if b, err := os.ReadFile(out); err == nil {
			got = string(b)
		} else if time.Now().After(deadline) {
			t.Fatal("the opener was not started")
		}
	}
	head, body, _ := strings.Cut(got, "<!doctype")
	lines := strings.Fields(head)
	if len(lines) != 4 || lines[0] != "1" || !strings.HasPrefix(lines[1], data) || lines[2] != "600" || lines[3] != "700" || strings.Contains(head, "capability") {
		t.Errorf("the opener was told %q", head)
	}
	if !strings.Contains(body, "url=http://localhost:8788/authentication/x#capability&#34;&gt;&lt;b&gt;&amp;") || strings.Contains(body, "<b>") {
		t.Errorf("the page is %q", body)
	}
	done()
	if left, err := os.ReadDir(data); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	if _, ok := openURL(data, address); ok {
		t.Error("opened without a desktop")
	}
}

// KEY-02: sweeping removes what this user's killed runs left, and neither
// follows, waits for nor removes anything that somebody else may have put there.
func TestSweep(t *testing.T) {
	temporary, target := t.TempDir(), filepath.Join(t.TempDir(), "target")
	old := time.Now().Add(-time.Hour)
	folder := func(name string, mode os.FileMode) string {
		path := filepath.Join(temporary, "chaperone-"+name)
		if err := errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "lock"), nil, 0o600), os.Chtimes(filepath.Join(path, "lock"), old, old), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	gone := folder("killed", 0o700)
	held := folder("held", 0o700)
	unlock, err := datadir.Dir(held).Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	kept := []string{held, folder("open", 0o755), folder("sticky", os.ModeSticky|0o700)}
	young := folder("young", 0o700)
	if err := os.Chtimes(filepath.Join(young, "lock"), time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	link, pipe, elsewhere := folder("link", 0o700), folder("pipe", 0o700), filepath.Join(temporary, "chaperone-elsewhere")
	outside := folder("x", 0o700)
	moved := filepath.Join(t.TempDir(), "moved")
	if err := errors.Join(
		os.WriteFile(target, nil, 0o600), os.Chtimes(target, old, old),
		os.Remove(filepath.Join(link, "lock")), os.Symlink(target, filepath.Join(link, "lock")),
		os.Remove(filepath.Join(pipe, "lock")), unix.Mkfifo(filepath.Join(pipe, "lock"), 0o600), os.Chtimes(filepath.Join(pipe, "lock"), old, old),
		os.Rename(outside, moved), os.Symlink(moved, elsewhere),
	); err != nil {
		t.Fatal(err)
	}
	kept = append(kept, young, link, pipe, elsewhere, moved, target)
	if os.Geteuid() == 0 { // only root can make another user's
		other := folder("other", 0o700)
		if err := os.Chown(other, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, other)
	}
	done := make(chan struct{})
	go func() { sweep(temporary); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("sweeping waits")
	}
	if _, err := os.Lstat(gone); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a killed run is still there: %v", err)
	}
	for _, path := range kept {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("removed or moved: %v", err)
		}
	}
}
