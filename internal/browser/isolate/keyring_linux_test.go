package isolate_test

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TRUST-03, EPH-01: the keys in the keyring of the session that the service was
// started from are not the browser's; no other namespace keeps them from it.
func TestKeyring(t *testing.T) {
	// A session of this thread, which the worker is forked from; it ends with
	// the test.
	runtime.LockOSThread()
	if _, _, err := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0); err == unix.ENOSYS || err == unix.EPERM {
		return // no process here has a keyring
	} else if err != 0 {
		t.Fatal(err)
	}
	const name = "chaperone-test:key"
	key, err := unix.AddKey("user", name, []byte("x"), unix.KEY_SPEC_SESSION_KEYRING)
	if err != nil {
		t.Fatal(err)
	}
	// Whoever has the keyring may search it, whatever its uid.
	for _, id := range []int{key, unix.KEY_SPEC_SESSION_KEYRING} {
		if err := unix.KeyctlSetperm(id, 0x3f3f0000); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", name, 0); err != nil || found != key {
		t.Fatalf("the key is not where the test put it: %d, %v", found, err)
	}
	_, order := start(t, config(t))
	if got := order("search-key " + name); got != unix.ENOKEY.Error() {
		t.Errorf("a search for the owner's key: %s", got)
	}
}
