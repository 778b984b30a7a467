// Package chromiumtest is what tests with a real Chromium need: the binaries,
// an unprivileged user to run as (a browser's sandbox does not work as root),
// and public-shaped TLS sites on loopback with an independent record of every
// request (GATE-01, EPH-02).
package chromiumtest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// uid is what a test binary becomes when it was started as root. It needs no
// entry in the user database; distinct test binaries get distinct ones, so
// that each finds its own processes.
func uid() int { return 61000 + os.Getpid()%4000 }

// Main runs the tests of a package as an unprivileged user who is also the
// parent of every process that a browser leaves. Call it from TestMain.
func Main(m *testing.M) int {
	if err := errors.Join(Unprivileged(), adopt()); err != nil {
		fmt.Fprintln(os.Stderr, "chromiumtest:", err)
		return 1
	}
	return m.Run()
}

// Unprivileged gives up root for good, for the whole process. Without root it
// does nothing.
func Unprivileged() error {
	if os.Geteuid() != 0 {
		return nil
	}
	// Display sockets live here; the first unprivileged Xvfb would own it.
	if err := os.MkdirAll("/tmp/.X11-unix", 0o1777); err != nil {
		return err
	}
	if err := os.Chmod("/tmp/.X11-unix", 0o1777|os.ModeSticky); err != nil {
		return err
	}
	if !flag.Parsed() {
		flag.Parse()
	}
	id := uid()
	for _, name := range []string{"test.testlogfile", "test.coverprofile", "test.cpuprofile"} {
		if err := keep(name, id); err != nil {
			return err
		}
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(id, id, id); err != nil {
		return err
	}
	if err := syscall.Setresuid(id, id, id); err != nil {
		return err
	}
	// The change of user made /proc/self root's; our files there are needed.
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 1, 0); e != 0 {
		return e
	}
	for _, name := range []string{"HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"} {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	return nil
}

// keep opens the file that a flag of the test binary names, in a directory
// that only root can enter, and names it by its descriptor instead.
func keep(name string, id int) error {
	f := flag.Lookup(name)
	if f == nil || f.Value.String() == "" {
		return nil
	}
	fd, err := syscall.Open(f.Value.String(), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("-%s: %w", name, err)
	}
	if err := syscall.Fchown(fd, id, id); err != nil {
		return fmt.Errorf("-%s: %w", name, err)
	}
	return f.Value.Set(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// Chromium is the path of the browser binary. Without one the test is skipped,
// and fails when CI=true.
func Chromium(t testing.TB) string {
	t.Helper()
	return find(t, "Chromium", os.Getenv("CHAPERONE_TEST_CHROMIUM"),
		"/usr/lib/chromium/chromium", "/opt/google/chrome/chrome", "/usr/lib/chromium-browser/chromium-browser")
}

// Xvfb is the path of the X server; see Chromium.
func Xvfb(t testing.TB) string {
	t.Helper()
	return find(t, "Xvfb", os.Getenv("CHAPERONE_TEST_XVFB"), "/usr/bin/Xvfb")
}

func find(t testing.TB, what string, paths ...string) string {
	t.Helper()
	for _, p := range paths {
		if info, err := os.Stat(p); p != "" && err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed", what)
	}
	t.Skipf("%s is not installed", what)
	return ""
}

// Home is a private directory for one browser.
func Home(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "chaperone-test-") // short: socket paths are
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("the browser left files that cannot be removed: %v", err)
		}
	})
	return dir
}
