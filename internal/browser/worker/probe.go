package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/isolate"
)

// Check is one line of `chaperone doctor`.
type Check struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`          // what was found
	Mend  string `json:"mend,omitempty"` // what to do about it; empty when OK
}

// Probe checks what browsers need on this system, by doing it: the last check
// starts a browser, looks at its sandbox and ends it.
func Probe(ctx context.Context, cfg Config) []Check {
	cfg.Chromium, cfg.Xvfb = find(cfg.Chromium, chromiums()), find(cfg.Xvfb, xvfbs())
	checks := []Check{
		onDisk("worker program", cfg.Binary, "Put chaperone-worker beside the other programs (make build)."),
		onDisk("chromium", cfg.Chromium, "Install Chromium: apt-get install chromium."),
		onDisk("xvfb", cfg.Xvfb, "Install the virtual display: apt-get install xvfb."),
		fonts(),
	}
	launcher, err := NewLauncher(cfg)
	name := Namespaces
	if cfg.Isolation == Weak {
		name = "weak isolation"
	}
	if err != nil {
		return append(checks, Check{Name: name, Found: err.Error(), Mend: mendNamespaces()})
	}
	checks = append(checks, Check{Name: name, OK: true, Found: "a worker started, was verified and ended"})
	return append(checks, sandbox(ctx, launcher))
}

func sandbox(ctx context.Context, l *Launcher) Check {
	c := Check{Name: "chromium sandbox", Mend: "Chromium needs unprivileged user namespaces for its own sandbox too; see the namespaces check, and do not install it as a snap."}
	origins, err := site.ParseOrigins([]string{"https://doctor.example.org"})
	if err == nil {
		var page browser.Page
		if page, err = l.Launch(ctx, browser.Spec{Tenant: "doctor", Origins: origins}); err == nil {
			err = page.Close()
		}
	}
	if err != nil {
		c.Found = err.Error()
		return c
	}
	c.OK, c.Found, c.Mend = true, "a browser started with its sandbox on and ended", ""
	return c
}

func onDisk(name, path, mend string) Check {
	if err := program(path); err != nil {
		return Check{Name: name, Found: err.Error(), Mend: mend}
	}
	return Check{Name: name, OK: true, Found: path}
}

// fonts looks for any font at all: without one pages have no text to measure.
func fonts() Check {
	found := errors.New("found")
	err := filepath.WalkDir("/usr/share/fonts", func(path string, d fs.DirEntry, err error) error {
		if ext := strings.ToLower(filepath.Ext(path)); err == nil && (ext == ".ttf" || ext == ".otf" || ext == ".ttc") {
			return found
		}
		return nil
	})
	if err == found {
		return Check{Name: "fonts", OK: true, Found: "fonts under /usr/share/fonts"}
	}
	return Check{Name: "fonts", Found: "no font under /usr/share/fonts", Mend: "Install fonts: apt-get install fonts-dejavu-core fonts-liberation."}
}

// mendNamespaces says which of the usual switches is off.
func mendNamespaces() string {
	if !isolate.Supported {
		return "This system has no namespaces; accept the weak isolation by name, or use Linux."
	}
	for _, s := range []struct{ path, off, mend string }{
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "Allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1."},
		{"/proc/sys/user/max_user_namespaces", "0", "Allow user namespaces: sysctl -w user.max_user_namespaces=10000."},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "Allow user namespaces: give chaperone-worker and Chromium an AppArmor profile with userns, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0."},
	} {
		if b, err := os.ReadFile(s.path); err == nil && strings.TrimSpace(string(b)) == s.off {
			return s.mend
		}
	}
	return "If this is a container, allow it to make user namespaces (seccomp and AppArmor profiles) and leave /proc unmasked; otherwise accept the weak isolation by name."
}

// chromiums are the usual places of the program itself; the wrapper scripts in
// /usr/bin add switches and environment of their own.
func chromiums() []string {
	return []string{"/usr/lib/chromium/chromium", "/usr/lib64/chromium/chromium", "/usr/lib64/chromium-browser/chromium-browser", "/opt/google/chrome/chrome"}
}

func xvfbs() []string { return []string{"/usr/bin/Xvfb", "/opt/X11/bin/Xvfb"} }

// find is the configured path with its links resolved, or the first that exists.
func find(configured string, usual []string) string {
	if configured == "" {
		for _, p := range usual {
			if program(p) == nil {
				configured = p
				break
			}
		}
	}
	if real, err := filepath.EvalSymlinks(configured); err == nil && configured != "" {
		return real
	}
	return configured
}

// program reports why path cannot be executed by every user.
func program(path string) error {
	if path == "" {
		return errors.New("it was found in none of the usual places")
	}
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s is not an absolute path", path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not a program", path)
	case os.Getuid() == 0 && info.Mode().Perm()&0o005 != 0o005:
		return fmt.Errorf("%s cannot be executed by the user ids of browsers; its mode should be 0755", path)
	case info.Mode().Perm()&0o002 != 0:
		return fmt.Errorf("%s can be changed by anybody; its mode should be 0755", path)
	}
	return nil
}
