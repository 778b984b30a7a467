package isolate

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ISO-01: verify catches a worker that lacks any one of its walls. Each case
// is a process that is started as a worker is, but for one thing.
func TestVerifyCatchesBrokenWorkers(t *testing.T) {
	uid := os.Getuid()
	if uid == 0 {
		uid = 67_891
	}
	attr := func(missing uintptr) *syscall.SysProcAttr {
		a := &syscall.SysProcAttr{Cloneflags: namespaces &^ missing}
		if missing != unix.CLONE_NEWUSER {
			a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
			a.GidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
			a.GidMappingsEnableSetgroups = os.Getuid() == 0
		}
		if os.Getuid() == 0 {
			a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
		}
		return a
	}
	for name, c := range map[string]struct {
		attr *syscall.SysProcAttr
		want string
	}{
		"pid namespace": {attr(unix.CLONE_NEWPID), "shares the pid"},
		"net namespace": {attr(unix.CLONE_NEWNET), "shares the net"},
		"mnt namespace": {attr(unix.CLONE_NEWNS), "shares the mnt"},
		"ipc namespace": {attr(unix.CLONE_NEWIPC), "shares the ipc"},
		"uts namespace": {attr(unix.CLONE_NEWUTS), "shares the uts"},
		"no new rights": {attr(0), "could gain privileges"},
		"everything":    {&syscall.SysProcAttr{}, "shares the user"},
		"wrong user":    {func() *syscall.SysProcAttr { a := attr(0); a.UidMappings[0].HostID++; return a }(), "user ids"},
		"capabilities": {func() *syscall.SysProcAttr {
			a := attr(0)
			a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
			return a
		}(), "capabilities"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/bin/sleep", "60")
			cmd.SysProcAttr = c.attr
			if name == "wrong user" && os.Getuid() != 0 {
				return // only root can start another user's process
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			w := &Worker{uid: uid, cmd: cmd}
			if err := w.verify(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("verify says %v, want %q", err, c.want)
			}
			if err := w.VerifyBrowser(); err == nil {
				t.Error("VerifyBrowser found a browser")
			}
		})
	}
}

func TestOnlyLoopback(t *testing.T) {
	head := "Inter-| Receive\n face |bytes\n"
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"loopback": {"    lo: 0 0\n", true},
		"a card":   {"    lo: 0 0\n  eth0: 0 0\n", false},
		"nothing":  {"", false},
		"a bridge": {" docker0: 0 0\n", false},
	} {
		path := t.TempDir() + "/dev"
		os.WriteFile(path, []byte(head+c.text), 0o600)
		if err := onlyLoopback(path); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
