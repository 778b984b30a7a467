// Package driver is one Chromium with one page: browser.Page over the DevTools
// protocol. It covers the observation rules (OBS-01 to OBS-06, CAPT-01,
// CAPT-02, CAP-03 to CAP-07), continuation (EXP-01 to EXP-12), readings
// (TEXT-05, REGN-05, FOC-01 to FOC-04, FOC-07 to FOC-09, EXTR-03, DRAFT-01 to
// DRAFT-05), settling (SETL-01 to SETL-06), acts (CLK-01 to CLK-03, DENY-01 to
// DENY-03, REL-02, NAVC-01, SER-01), popups and documents (POP-01 to POP-06), sign-in challenges
// (CHAL-01, CHAL-02) and the launch rules (EPH-01, EPH-02, HEAD-01, HEAD-02).
// It trusts neither the page nor what the page says of itself, and reaches the
// network only through the proxy it is given.
package driver

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
)

// Config says how a browser is started.
type Config struct {
	Origins site.Origins // where the main frame may navigate
	Headed  bool         // under a private Xvfb that Launch starts; never a silent fallback to headless (HEAD-01)
	Proxy   string       // "127.0.0.1:port", the only way out
	// Specified keeps to the candidates of the contract before 1.9.0, and to the
	// main document.
	Specified bool
	// Challenges: a page that asks for its owner is not read, and nothing is sent
	// to it. For sessions of a profile; a browser without one must be able to read
	// a page that has a password field.
	Challenges bool
	Home       string // private existing directory (0700), becomes HOME, TMPDIR and the place of the profile
	Chromium   string // absolute path of the binary, not of a wrapper script
	Xvfb       string // absolute path of the binary; needed when Headed
	// TrustedCA is one PEM certificate authority to trust besides the public
	// ones. Development mode only; nil in production.
	TrustedCA []byte
	// PolicyDir is a writable directory that is Chromium's managed policy
	// directory in the browser's mount namespace, or empty.
	PolicyDir string
	Log       *slog.Logger // never gets page content
}

func (c Config) validate() error {
	if len(c.Origins) == 0 {
		return fmt.Errorf("driver: no origins")
	}
	if a, err := netip.ParseAddrPort(c.Proxy); err != nil || !a.Addr().IsLoopback() || a.Port() == 0 {
		return fmt.Errorf("driver: the proxy is not a loopback address and port")
	}
	if c.Log == nil {
		return fmt.Errorf("driver: no logger")
	}
	info, err := os.Stat(c.Home)
	if err != nil {
		return fmt.Errorf("driver: home: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !filepath.IsAbs(c.Home) || !info.IsDir() || info.Mode().Perm() != 0o700 || !ok || int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("driver: home must be an absolute directory of this user with mode 0700")
	}
	if err := executable(c.Chromium); err != nil {
		return fault.Wrap(fault.ProviderUnavailable, "Chromium is not installed where it is configured. Run chaperone doctor.", err)
	}
	if c.Headed {
		if err := executable(c.Xvfb); err != nil {
			return fault.Wrap(fault.ProviderUnavailable, "Xvfb is not installed where it is configured, and a headed browser needs it. Run chaperone doctor.", err)
		}
	}
	if os.Geteuid() == 0 {
		return fault.New(fault.ProviderUnavailable, "A browser does not start as root, because its sandbox would be off.")
	}
	return nil
}

func executable(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("driver: %q is not an absolute path", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("driver: %s is not a program", path)
	}
	return nil
}
