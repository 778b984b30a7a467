package vault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/privatefs"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

// The tests of this file run this test binary again as another process; these
// variables tell it what to be.
const (
	roleVariable = "VAULT_TEST_ROLE"
	dirVariable  = "VAULT_TEST_DIR"
	killVariable = "VAULT_TEST_KILL" // <operation number>:<before|half|after>
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "writer":
		if err := writer(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case "opener":
		_, err := Open(configIn(os.Getenv(dirVariable)))
		fmt.Println(err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func configIn(dir string) Config {
	return Config{Dir: filepath.Join(dir, "profiles"), KeyDir: filepath.Join(dir, "keys")}
}

func self(role, dir, kill string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{roleVariable + "=" + role, dirVariable + "=" + dir, killVariable + "=" + kill}
	return cmd
}

// dying kills its process with SIGKILL at one disk operation.
type dying struct {
	disk
	dir  string
	left int
	when string
}

func (d *dying) run(half, do func() error) error {
	d.left--
	if d.left != 0 {
		return do()
	}
	switch d.when {
	case "half":
		_ = half()
	case "after":
		_ = do()
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}

func nothing() error { return nil }

func (d *dying) Stage(name string, data []byte) error {
	half := func() error { return os.WriteFile(filepath.Join(d.dir, name), data[:len(data)/2], 0o600) }
	return d.run(half, func() error { return d.disk.Stage(name, data) })
}
func (d *dying) Link(from, to string) error {
	return d.run(nothing, func() error { return d.disk.Link(from, to) })
}
func (d *dying) Rename(from, to string) error {
	return d.run(nothing, func() error { return d.disk.Rename(from, to) })
}
func (d *dying) Remove(name string) error {
	return d.run(nothing, func() error { return d.disk.Remove(name) })
}
func (d *dying) Sync() error { return d.run(nothing, d.disk.Sync) }

const writerProfile = "6f1d6d5e-2f0b-4a53-9a53-0a4c4d1f2b11"

// writer goes through the life of a profile and says after each step that it
// was done, as a program would by its reply.
func writer() error {
	c := configIn(os.Getenv(dirVariable))
	number, when, _ := strings.Cut(os.Getenv(killVariable), ":")
	left, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	real, err := privatefs.Open(c.Dir)
	if err != nil {
		return err
	}
	v, err := open(c, &dying{disk: real, dir: c.Dir, left: left, when: when})
	if err != nil {
		return err
	}
	var r Record
	seal := func(text string) error {
		return v.Seal(owner, writerProfile, r.Ref, secret.NewBytes([]byte(text)))
	}
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"create", func() (err error) { r, err = v.Create(owner, writerProfile, wikiOrigins()); return err }},
		{"one", func() error { return seal("one") }},
		{"two", func() error { return seal("two") }},
		{"revoke", func() error { return v.Revoke(owner, writerProfile, r.Ref) }},
		{"delete", func() error { return v.Delete(owner, writerProfile, r.Ref) }},
	} {
		if err := step.run(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Println(step.name, r.Ref)
	}
	return nil
}

// STORE-02, STORE-08, LIFE-02: killed before, in the middle of, or after any
// disk operation, a process leaves a store that opens again and holds what
// its last reply said, or what the step after it would have said.
func TestKilled(t *testing.T) {
	// state of the store after each acknowledged step
	states := []string{"absent", "empty", "one", "two", "revoked", "absent"}
	finished := false
	for n := 1; !finished; n++ {
		if n > 40 {
			t.Fatal("the writer never gets through its steps")
		}
		for _, when := range []string{"before", "half", "after"} {
			dir := t.TempDir()
			c := newConfig(t, dir)
			cmd := self("writer", dir, fmt.Sprintf("%d:%s", n, when))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if exit := (&exec.ExitError{}); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != -1) {
				t.Fatalf("operation %d: %v: %s", n, err, stderr.String())
			}
			finished = err == nil
			replies := strings.Fields(string(out))
			step := len(replies) / 2
			got := stateOf(t, c)
			if got != states[step] && (step+1 >= len(states) || got != states[step+1]) {
				t.Errorf("killed %s operation %d after reply %d: the store is %q", when, n, step, got)
			}
			// The reference of a reply is still the reference.
			if step > 0 && got != "absent" {
				v := mustOpen(t, c)
				if _, err := v.Lookup(owner, writerProfile, replies[1]); err != nil {
					t.Errorf("killed %s operation %d: the reference has changed: %v", when, n, err)
				}
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// stateOf opens the store once, checks that nothing is left over, and says
// what it holds of the writer's profile.
func stateOf(t *testing.T, c Config) string {
	t.Helper()
	v, err := Open(c)
	if err != nil {
		t.Fatalf("the store does not open again: %v", err)
	}
	defer func() { _ = v.Close() }()
	if left, _ := filepath.Glob(filepath.Join(c.Dir, stagePrefix+"*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	e := v.find(writerProfile)
	if e == nil {
		return "absent"
	}
	r := v.record(e)
	if r.Revoked {
		return "revoked"
	}
	if text := loads(v, r); text != "" {
		return text
	}
	return "empty"
}

// STORE-09: another process cannot open the store while this one has it.
func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	c := newConfig(t, dir)
	v := mustOpen(t, c)
	out, err := self("opener", dir, "").Output()
	if err != nil || !strings.Contains(string(out), "another process") {
		t.Errorf("a second process: %q, %v", out, err)
	}
	r := mustCreate(t, v)
	mustSeal(t, v, r, "session")
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := self("opener", dir, "").Output(); err != nil || strings.TrimSpace(string(out)) != "<nil>" {
		t.Errorf("a second process after the first: %q, %v", out, err)
	}
	if got := loads(mustOpen(t, c), r); got != "session" {
		t.Errorf("after the processes: %q", got)
	}
}

// STORE-02: on a full disk and on a read-only one a seal fails, and the
// earlier one is kept. Both are real file systems, in a mount namespace of
// their own.
func TestFullAndReadOnlyDisk(t *testing.T) {
	if os.Getenv(roleVariable) != "mounts" {
		inMountNamespace(t)
		return
	}
	dir := t.TempDir()
	c := configIn(dir)
	profiles := c.Dir
	c = newConfig(t, dir)
	if err := syscall.Mount("tmpfs", profiles, "tmpfs", 0, "size=256k,mode=0700"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Unmount(profiles, syscall.MNT_DETACH) }()
	v := mustOpen(t, c)
	r := mustCreate(t, v)
	mustSeal(t, v, r, "earlier")

	err := v.Seal(owner, r.ProfileID, r.Ref, secret.NewBytes(make([]byte, 1<<20)))
	if !fault.Is(err, fault.Internal) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("seal on a full disk: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(profiles, stagePrefix+"*")); len(left) > 0 {
		t.Errorf("a full disk keeps the staged file: %q", left)
	}
	if got := loads(v, r); got != "earlier" {
		t.Errorf("after a full disk: %q", got)
	}
	mustSeal(t, v, r, "smaller") // there is room for it again

	if err := syscall.Mount("", profiles, "", syscall.MS_REMOUNT|syscall.MS_RDONLY|syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	err = v.Seal(owner, r.ProfileID, r.Ref, secret.NewBytes([]byte("later")))
	if !errors.Is(err, syscall.EROFS) {
		t.Errorf("seal on a read-only disk: %v", err)
	}
	if err := v.Revoke(owner, r.ProfileID, r.Ref); !errors.Is(err, syscall.EROFS) {
		t.Errorf("revoke on a read-only disk: %v", err)
	}
	if got := loads(v, r); !strings.Contains(got, string(fault.ProfileUnavailable)) {
		t.Errorf("the fence does not hold on a read-only disk: %q", got)
	}
	if err := syscall.Mount("", profiles, "", syscall.MS_REMOUNT|syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := v.Revoke(owner, r.ProfileID, r.Ref); err != nil {
		t.Errorf("revoke when the disk is writable again: %v", err)
	}
}

// inMountNamespace runs the calling test again where it may mount.
func inMountNamespace(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), roleVariable+"=mounts")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if start := (&exec.ExitError{}); err != nil && !errors.As(err, &start) && os.Getenv("CI") != "true" {
		t.Skipf("no mount namespace here: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}
