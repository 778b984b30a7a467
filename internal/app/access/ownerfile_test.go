package access_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/store"
)

var errFull = errors.Join(errors.New("disk full"), store.ErrUnavailable)

// holder reads the file as the command line would, and says whose it is.
func (h *house) holder(path string) caller.Caller {
	h.t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		h.t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		h.t.Fatalf("the file has mode %v, want a regular one with 0600", info.Mode())
	}
	body, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	who, err := h.Authenticate(h.t.Context(), secret.NewText(strings.TrimSuffix(string(body), "\n")))
	if err != nil {
		h.t.Fatalf("the credential in the file: %v", err)
	}
	return who
}

func (h *house) ownerFile(path string) caller.Caller {
	h.t.Helper()
	if err := h.OwnerFile(h.t.Context(), ana, path); err != nil {
		h.t.Fatal(err)
	}
	who := h.holder(path)
	if who.Scope != ana || who.Role != caller.Owner {
		h.t.Fatalf("the file belongs to %+v", who)
	}
	return who
}

func TestOwnerFileIsMadeOnceAndKept(t *testing.T) {
	h := newHouse(t)
	path := filepath.Join(h.dir, "owner")
	first := h.ownerFile(path)
	before := h.store.writes.Load()
	if again := h.ownerFile(path); again != first || h.store.writes.Load() != before {
		t.Errorf("a working file was replaced: %+v, then %+v", first, again)
	}
	if len(h.devices(ana)) != 1 {
		t.Errorf("%d devices, want 1", len(h.devices(ana)))
	}
	left, err := filepath.Glob(filepath.Join(h.dir, "*owner*"))
	if err != nil || len(left) != 1 {
		t.Errorf("files beside it: %v, %v", left, err)
	}
}

func TestOwnerFileIsReplacedWhenItDoesNotWork(t *testing.T) {
	for name, spoil := range map[string]func(h *house, path string, first caller.Caller) string{
		"revoked": func(h *house, _ string, first caller.Caller) string {
			if err := h.Revoke(h.t.Context(), byMe, first.Device); err != nil {
				h.t.Fatal(err)
			}
			return ""
		},
		"garbage":       func(*house, string, caller.Caller) string { return "apd1.nonsense" },
		"emptied":       func(*house, string, caller.Caller) string { return "\n" },
		"much too long": func(*house, string, caller.Caller) string { return strings.Repeat("x", 1<<20) },
		"another's scope": func(h *house, _ string, _ caller.Caller) string {
			_, c := h.pair(caller.Caller{Scope: ben, Role: caller.Owner}, caller.Owner, "")
			return c.Reveal()
		},
		"an agent's": func(h *house, _ string, _ caller.Caller) string {
			_, c := h.pair(byMe, caller.Agent, h.session(ana))
			return c.Reveal()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			path := filepath.Join(h.dir, "owner")
			first := h.ownerFile(path)
			if body := spoil(h, path, first); body != "" {
				if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if next := h.ownerFile(path); next.Device == first.Device {
				t.Error("the device is still the first")
			}
		})
	}
}

// A credential that others could read is not only replaced but ended.
func TestOwnerFileThatWasExposed(t *testing.T) {
	h := newHouse(t)
	path := filepath.Join(h.dir, "owner")
	h.ownerFile(path)
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	h.ownerFile(path)
	h.refused(h.Access, secret.NewText(strings.TrimSpace(string(body))))
}

// A link is replaced, not followed.
func TestOwnerFileThatIsALink(t *testing.T) {
	h := newHouse(t)
	path, target := filepath.Join(h.dir, "owner"), filepath.Join(h.dir, "target")
	h.ownerFile(target) // a credential that works, in the wrong place
	before, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	h.ownerFile(path)
	if body, err := os.ReadFile(target); err != nil || !bytes.Equal(body, before) {
		t.Errorf("the target of the link was changed (%v)", err)
	}
}

func TestOwnerFileThatCannotBeWritten(t *testing.T) {
	h := newHouse(t)
	err := h.OwnerFile(t.Context(), ana, filepath.Join(h.dir, "missing", "owner"))
	wantCode(t, err, fault.Internal)
	if list, err := h.Devices(t.Context(), byMe); err != nil || len(list) != 0 {
		t.Errorf("a device that nobody holds may still authenticate: %v, %v", list, err)
	}
	if err := h.OwnerFile(t.Context(), ana, h.dir); err == nil {
		t.Error("a folder was accepted as the file")
	}
}

// Trouble with the store leaves a file that may well work.
func TestOwnerFileSurvivesAnUnavailableStore(t *testing.T) {
	h := newHouse(t)
	path := filepath.Join(h.dir, "owner")
	first := h.ownerFile(path)
	for _, fail := range []*error{&h.store.failAll, &h.store.failReads} {
		*fail = errFull
		wantCode(t, h.OwnerFile(t.Context(), ana, path), fault.Internal)
		*fail = nil
		if got := h.holder(path); got != first {
			t.Errorf("the file now belongs to %+v", got)
		}
	}
}
