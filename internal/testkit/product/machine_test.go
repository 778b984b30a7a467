package product_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

// Without Chromium or without Xvfb the owner and the agent are told so in
// words, nothing hangs, and the rest works.
func TestMissingPrograms(t *testing.T) {
	_, _, dev := newWorkshop(t)
	for _, c := range []struct{ flag, says string }{{"--chromium", "Chromium"}, {"--xvfb", "Xvfb"}} {
		t.Run(c.flag, func(t *testing.T) {
			owner := product.Person{Bin: programsWith(t, c.flag+"=/nonexistent/program")}
			data := product.Folder(t)
			r := owner.Up(t, data, "--dev", dev, "--approval-wait", "0s")
			id := profile(t, r)
			if got := owner.Run(t, data, "signin", id, "--no-open"); got.Status != 6 || !strings.Contains(got.Err, "chaperone doctor") {
				t.Errorf("signin: status %d, %s", got.Status, got.Err)
			}
			agent := owner.Agent(t, data, "--ephemeral", "--headed", "--origin", shopURL)
			v := agent.Call("browser.navigate", map[string]string{"url": shopURL + "/"})
			if v.Code != "tool.browser.provider_unavailable" || !strings.Contains(v.Message, c.says) && !strings.Contains(v.Message, "chaperone doctor") {
				t.Errorf("navigate: %+v", v)
			}
			if !strings.Contains(r.Log.String(), c.says) {
				t.Errorf("the log does not name %s", c.says)
			}
			if got := owner.Run(t, data, "doctor"); got.Status != 7 || !strings.Contains(got.Out, "FAIL  "+strings.ToLower(c.says)) || !strings.Contains(got.Out, "apt-get install") {
				t.Errorf("doctor: status %d, %s", got.Status, got.Out)
			}
			r.Must(nil, "profile", "revoke", id)
		})
	}
}

// programsWith is a folder of the built programs in which chaperone-browserd
// is started with one more flag.
func programsWith(t *testing.T, flag string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chaperone-bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"chaperone", "chaperoned", "chaperone-worker"} {
		if err := os.Link(filepath.Join(product.Bin(t), name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\nexec " + filepath.Join(product.Bin(t), "chaperone-browserd") + " \"$@\" " + flag + "\n"
	if err := os.WriteFile(filepath.Join(dir, "chaperone-browserd"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// An ordinary user runs everything: browsers are isolated, Chromium's own
// sandbox is on, and what others could read is nothing (EPH-01, ISO-01).
func TestUpAsAnOrdinaryUser(t *testing.T) {
	owner := product.Person{}
	dir := filepath.Dir(product.Folder(t))
	if os.Getuid() == 0 {
		owner = product.Person{UID: 64990, Home: dir}
		if err := os.Chown(dir, owner.UID, owner.UID); err != nil {
			t.Fatal(err)
		}
	}
	shop, site, _ := newWorkshop(t)
	dev, err := site.DevFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dev, filepath.Join(filepath.Dir(dev), "ca.pem")} {
		if err := os.Chmod(name, 0o644); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	r := owner.Up(t, data, "--dev", dev, "--approval-wait", "0s")
	agent := owner.Agent(t, data, "--ephemeral", "--origin", shopURL)
	page := agent.Open(shopURL + "/")
	if got := owner.Run(t, data, "approvals", "approve", ask(t, agent, page)); got.Status != 0 {
		t.Fatal(got.Err)
	}
	if v := agent.Act(page, "click", "Send order", nil); v.Code != "" {
		t.Errorf("approved: %+v", v)
	}
	shop.has(t, 1, "after one approval")

	found, err := leak.Alive(r.Family())
	if err != nil {
		t.Fatal(err)
	}
	renderers := 0
	for _, p := range found {
		if owner.UID != 0 && p.UID != owner.UID {
			t.Errorf("runs as another user: %v", p)
		}
		if strings.Contains(p.Cmdline, "no-"+"sandbox") {
			t.Errorf("the sandbox is off: %v", p)
		}
		if strings.Contains(p.Cmdline, "--type=renderer") {
			renderers++
			status := read(t, "/proc/"+strconv.Itoa(p.PID)+"/status")
			if !strings.Contains(status, "Seccomp:\t2\n") || !strings.Contains(status, "CapEff:\t0000000000000000\n") {
				t.Errorf("a renderer without its sandbox: %v\n%s", p, status)
			}
		}
	}
	if renderers == 0 {
		t.Error("no renderer was found")
	}
	err = filepath.WalkDir(data, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may use %s: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	agent.Close()
	family := r.Family()
	r.Stop()
	leak.NoProcess(t, 30*time.Second, family)
}

// inside names the folder to mount on, in the process that has mounts of its own.
const inside = "CHAPERONE_PRODUCT_TEST_INSIDE"

// withOwnMounts runs the calling test again, alone, with mounts of its own,
// and there calls fn with a small empty file system.
func withOwnMounts(t *testing.T, fn func(dir string)) {
	t.Helper()
	if dir := os.Getenv(inside); dir != "" {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m,mode=0755"); err != nil {
			t.Fatal(err)
		}
		fn(dir)
		return
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	c.Env = append(os.Environ(), inside+"="+filepath.Dir(product.Folder(t)), product.BinEnv+"="+product.Bin(t))
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := c.CombinedOutput()
	if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
		t.Skip("only root can give a test a disk of its own")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The disk is full: what the owner approved is refused before anything is
// sent, the owner can still look, and with room again the same answer is good
// for one effect. The seals stay as they are (STORE-04, POL-02).
func TestFullDisk(t *testing.T) {
	withOwnMounts(t, func(dir string) {
		shop, _, dev := newWorkshop(t)
		data := filepath.Join(dir, "data")
		r := product.Up(t, data, "--dev", dev, "--approval-wait", "0s")
		id := profile(t, r)
		agent := product.NewAgent(t, data, "--ephemeral", "--origin", shopURL)
		page := agent.Open(shopURL + "/")
		asked := ask(t, agent, page)
		r.Must(nil, "approvals", "approve", asked)
		sealed := read(t, seals(t, data)[0])
		filler := filepath.Join(dir, "filler")
		fill(t, filler)

		if v := agent.Act(page, "click", "Send order", nil); v.Code != "tool.browser.provider_unavailable" || !v.Retryable {
			t.Errorf("on a full disk: %+v", v)
		}
		shop.has(t, 0, "on a full disk")
		if !strings.Contains(r.Log.String(), "full") {
			t.Error("the log does not say why")
		}
		for _, line := range []string{"profile list", "profile show " + id, "approvals list --all", "approvals show " + asked, "audit tail", "sessions list"} {
			r.Must(nil, strings.Fields(line)...)
		}
		if got := product.Run(t, data, "profile", "create", "--origin", desk); got.Status == 0 || got.Err == "" {
			t.Errorf("create on a full disk: status %d, %s", got.Status, got.Err)
		}

		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if v := agent.Act(page, "click", "Send order", nil); v.Code != "" {
			t.Errorf("with room again: %+v", v)
		}
		shop.has(t, 1, "with room again")
		if read(t, seals(t, data)[0]) != sealed {
			t.Error("the seal changed")
		}
		agent.Close()
		r.Stop()
		product.Up(t, data, "--dev", dev).Must(nil, "profile", "show", id)
	})
}

// fill writes until no byte more fits.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// A data folder that cannot be written is refused at the start, in words, and
// is as good as before when it can be written again.
func TestReadOnlyFolder(t *testing.T) {
	withOwnMounts(t, func(dir string) {
		data := filepath.Join(dir, "data")
		r := product.Up(t, data)
		id := profile(t, r)
		r.Stop()
		remount := func(flags uintptr) {
			t.Helper()
			if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|flags, ""); err != nil {
				t.Fatal(err)
			}
		}
		remount(syscall.MS_RDONLY)
		refused, err := product.TryUp(t, data)
		if err == nil || !strings.Contains(refused.Log.String(), "read-only file system") || !strings.Contains(refused.Log.String(), "data folder") {
			t.Errorf("error %v, log %s", err, refused.Log)
		}
		remount(0)
		product.Up(t, data).Must(nil, "profile", "show", id)
	})
}
