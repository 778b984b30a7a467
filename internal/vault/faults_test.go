package vault

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/privatefs"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

// failing is a disk whose operation of one kind fails, before or after it did
// its work.
type failing struct {
	disk
	op    string // stage, link, rename, remove, sync; "" for none
	after bool
}

var errDisk = errors.New("input/output error at /some/path")

func (f *failing) run(op string, do func() error) error {
	if f.op != op {
		return do()
	}
	if f.after {
		if err := do(); err != nil {
			return err
		}
	}
	return errDisk
}

func (f *failing) Stage(name string, data []byte) error {
	return f.run("stage", func() error { return f.disk.Stage(name, data) })
}
func (f *failing) Link(from, to string) error {
	return f.run("link", func() error { return f.disk.Link(from, to) })
}
func (f *failing) Rename(from, to string) error {
	return f.run("rename", func() error { return f.disk.Rename(from, to) })
}
func (f *failing) Remove(name string) error {
	return f.run("remove", func() error { return f.disk.Remove(name) })
}
func (f *failing) Sync() error { return f.run("sync", f.disk.Sync) }

func openFailing(t *testing.T, c Config) (*Vault, *failing) {
	t.Helper()
	d, err := privatefs.Open(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	f := &failing{disk: d}
	v, err := open(c, f)
	if err != nil {
		t.Fatal(err)
	}
	return v, f
}

// STORE-02, STORE-08: whatever step of a write fails, what was sealed before
// is there after a restart, or the new seal is, whole.
func TestWriteFaults(t *testing.T) {
	for _, op := range []string{"stage", "rename", "sync"} {
		for _, after := range []bool{false, true} {
			c := newConfig(t, t.TempDir())
			v, disk := openFailing(t, c)
			r := mustCreate(t, v)
			mustSeal(t, v, r, "earlier")
			disk.op, disk.after = op, after
			err := v.Seal(owner, r.ProfileID, r.Ref, secret.NewBytes([]byte("later")))
			if !fault.Is(err, fault.Internal) || !errors.Is(err, errDisk) {
				t.Fatalf("%s: seal: %v", op, err)
			}
			if p := fault.Public(err); p.Err != nil || strings.Contains(p.Public, "path") {
				t.Errorf("%s: the public error is %+v", op, p)
			}
			disk.op = ""
			if op == "sync" {
				// Nobody knows what is durable now: nothing works until reopened.
				if got := loads(v, r); !strings.Contains(got, string(fault.Internal)) {
					t.Errorf("load after a failed directory sync: %s", got)
				}
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			got := loads(mustOpen(t, c), r)
			if got != "earlier" && (got != "later" || op == "stage") {
				t.Errorf("%s (after=%v): after a restart: %q", op, after, got)
			}
		}
	}
}

// STORE-07: a failed create leaves no profile that the next one would trip over.
func TestCreateFaults(t *testing.T) {
	for _, op := range []string{"stage", "link", "remove", "sync"} {
		for _, after := range []bool{false, true} {
			c := newConfig(t, t.TempDir())
			v, disk := openFailing(t, c)
			id := ident.New()
			disk.op, disk.after = op, after
			first, err := v.Create(owner, id, wikiOrigins())
			if (err == nil) != (op == "remove") {
				t.Fatalf("%s: create: %v", op, err)
			}
			disk.op = ""
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			v = mustOpen(t, c)
			again, err := v.Create(owner, id, wikiOrigins())
			if err != nil || first.Ref != "" && again.Ref != first.Ref {
				t.Errorf("%s: after a restart: %+v, %v", op, again, err)
			}
			if left, _ := filepath.Glob(filepath.Join(c.Dir, "*.profile")); len(left) != 1 {
				t.Errorf("%s: files %q", op, left)
			}
			if got := loads(v, again); got != "" {
				t.Errorf("%s: a new profile loads %q", op, got)
			}
		}
	}
}

// LIFE-02, LEASE-09: a fence that cannot be written holds in this process, is
// reported as failed, and is written by the next call.
func TestRevokeFault(t *testing.T) {
	c := newConfig(t, t.TempDir())
	v, disk := openFailing(t, c)
	r := mustCreate(t, v)
	mustSeal(t, v, r, "session")
	disk.op = "stage"
	if err := v.Revoke(owner, r.ProfileID, r.Ref); !fault.Is(err, fault.Internal) {
		t.Fatalf("revoke: %v", err)
	}
	if got := loads(v, r); !strings.Contains(got, string(fault.ProfileUnavailable)) {
		t.Errorf("load behind a fence that is not durable: %s", got)
	}
	if err := v.Delete(owner, r.ProfileID, r.Ref); !fault.Is(err, fault.Conflict) {
		t.Errorf("delete behind a fence that is not durable: %v", err)
	}
	disk.op = ""
	if err := v.Revoke(owner, r.ProfileID, r.Ref); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := mustOpen(t, c).Lookup(owner, r.ProfileID, r.Ref); err != nil || !got.Revoked {
		t.Errorf("after a restart: %+v, %v", got, err)
	}
}

// LIFE-02: a delete that fails leaves the fence, and can be repeated.
func TestDeleteFault(t *testing.T) {
	c := newConfig(t, t.TempDir())
	v, disk := openFailing(t, c)
	defer func() { _ = v.Close() }()
	r := mustCreate(t, v)
	if err := v.Revoke(owner, r.ProfileID, r.Ref); err != nil {
		t.Fatal(err)
	}
	disk.op = "remove"
	if err := v.Delete(owner, r.ProfileID, r.Ref); !fault.Is(err, fault.Internal) {
		t.Fatalf("delete: %v", err)
	}
	if got, err := v.Lookup(owner, r.ProfileID, r.Ref); err != nil || !got.Revoked {
		t.Errorf("after a failed delete: %+v, %v", got, err)
	}
	disk.after = true // it goes, and the error comes nevertheless
	if err := v.Delete(owner, r.ProfileID, r.Ref); !fault.Is(err, fault.Internal) {
		t.Fatalf("delete: %v", err)
	}
	disk.op = ""
	if err := v.Delete(owner, r.ProfileID, r.Ref); err != nil {
		t.Errorf("delete repeated: %v", err)
	}
}

// A revoked profile can be fenced and deleted though its envelope was damaged
// while the vault was open, and a damaged or replaced one never loads (STORE-06).
func TestDamageWhileOpen(t *testing.T) {
	c := newConfig(t, t.TempDir())
	v := mustOpen(t, c)
	r := mustCreate(t, v)
	mustSeal(t, v, r, "first")
	path := filepath.Join(c.Dir, fileName(r.Ref))
	older, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mustSeal(t, v, r, "second")
	for what, data := range map[string][]byte{"an older envelope": older, "garbage": []byte("{}"), "nothing": nil} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := loads(v, r); !strings.Contains(got, string(fault.Internal)) {
			t.Errorf("%s loads %q", what, got)
		}
	}
	if err := v.Revoke(owner, r.ProfileID, r.Ref); err != nil {
		t.Errorf("revoke over a damaged envelope: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := v.Delete(owner, r.ProfileID, r.Ref); err != nil {
		t.Errorf("delete of a file that is gone: %v", err)
	}
}

// LIFE-03: a sweep that is interrupted goes on where it stopped.
func TestRotateFault(t *testing.T) {
	c := newConfig(t, t.TempDir())
	v := mustOpen(t, c)
	records := []Record{mustCreate(t, v), mustCreate(t, v), mustCreate(t, v)}
	for _, r := range records {
		mustSeal(t, v, r, r.ProfileID)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(c.KeyDir, "k2.key"), []byte("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="), 0o600),
		os.WriteFile(filepath.Join(c.KeyDir, "current"), []byte("k2\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	v, disk := openFailing(t, c)
	disk.op, disk.after = "rename", true
	if n, err := v.Rotate(context.Background()); n != 0 || !fault.Is(err, fault.Internal) {
		t.Fatalf("rotate: %d, %v", n, err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	v = mustOpen(t, c)
	if n, err := v.Rotate(context.Background()); n != 2 || err != nil {
		t.Errorf("rotate again: %d, %v; want the 2 that were left", n, err)
	}
	for _, r := range records {
		if got := loads(v, r); got != r.ProfileID {
			t.Errorf("after rotation: %q", got)
		}
	}
}

// Concurrent creators of one profile get one reference, and a load never sees
// anything but a whole seal; for the race detector too (STORE-09).
func TestConcurrent(t *testing.T) {
	v := mustOpen(t, newConfig(t, t.TempDir()))
	id, origins := ident.New(), wikiOrigins()
	refs := make([]string, 8)
	var wg sync.WaitGroup
	for i := range refs {
		wg.Go(func() {
			r, err := v.Create(owner, id, origins)
			if err != nil {
				t.Error(err)
				return
			}
			refs[i] = r.Ref
			for _, text := range []string{strings.Repeat("a", 5000), strings.Repeat("b", 9000)} {
				if err := v.Seal(owner, id, r.Ref, secret.NewBytes([]byte(text))); err != nil {
					t.Error(err)
				}
				got := loads(v, r)
				if got != strings.Repeat("a", 5000) && got != strings.Repeat("b", 9000) {
					t.Errorf("loaded %d bytes of something else", len(got))
				}
				if _, err := v.Lookup(owner, id, r.Ref); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, ref := range refs {
		if ref != refs[0] {
			t.Fatalf("two references for one profile: %q", refs)
		}
	}
	var revoked sync.WaitGroup
	for range 4 {
		revoked.Go(func() {
			if err := v.Revoke(owner, id, refs[0]); err != nil && !fault.Is(err, fault.ProfileUnavailable) {
				t.Error(err)
			}
			if err := v.Delete(owner, id, refs[0]); err != nil {
				t.Error(err)
			}
		})
	}
	revoked.Wait()
}

// Every method of a closed vault refuses, and closing again is harmless.
func TestClosed(t *testing.T) {
	v := mustOpen(t, newConfig(t, t.TempDir()))
	r := mustCreate(t, v)
	if err := errors.Join(v.Close(), v.Close()); err != nil {
		t.Fatal(err)
	}
	_, create := v.Create(owner, ident.New(), wikiOrigins())
	_, lookup := v.Lookup(owner, r.ProfileID, r.Ref)
	_, load := v.Load(owner, r.ProfileID, r.Ref)
	_, rotate := v.Rotate(context.Background())
	for what, err := range map[string]error{
		"create": create, "lookup": lookup, "load": load, "rotate": rotate,
		"seal":   v.Seal(owner, r.ProfileID, r.Ref, secret.NewBytes([]byte("x"))),
		"revoke": v.Revoke(owner, r.ProfileID, r.Ref), "delete": v.Delete(owner, r.ProfileID, r.Ref),
	} {
		if err == nil {
			t.Errorf("%s works on a closed vault", what)
		}
	}
}
