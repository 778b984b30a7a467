package artifacts_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/artifacts"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
	"github.com/chaperone-agents/chaperone/internal/store/sqlite"
)

var (
	ana = caller.Caller{Scope: caller.Scope{Tenant: "local", Principal: "ana"}, Role: caller.Owner, Device: ident.Hex(16)}
	ben = caller.Caller{Scope: caller.Scope{Tenant: "local", Principal: "ben"}, Role: caller.Owner, Device: ident.Hex(16)}
)

type bench struct {
	*artifacts.Artifacts
	t     *testing.T
	store store.Store
	dir   string
	now   time.Time
}

func newBench(t *testing.T, quota artifact.Quota) *bench {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	db, err := sqlite.Open(sqlite.Config{Path: filepath.Join(t.TempDir(), "data", "test.db"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	b := &bench{t: t, store: db, dir: filepath.Join(t.TempDir(), "images"), now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	b.Artifacts, err = artifacts.New(artifacts.Config{Store: db, Dir: b.dir, Quota: quota, Now: func() time.Time { return b.now }, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// session makes a live session of the owner, and is its agent.
func (b *bench) session(by caller.Caller) caller.Caller {
	b.t.Helper()
	origins, err := site.ParseOrigins([]string{"https://wiki.example.org"})
	if err != nil {
		b.t.Fatal(err)
	}
	s := run.Session{Scope: by.Scope, ID: ident.New(), Origins: origins, Contract: contract.Newest, CreatedAt: b.now}
	if err := b.store.Tx(b.t.Context(), by.Scope, func(tx store.Tx) error { return tx.InsertSession(s) }); err != nil {
		b.t.Fatal(err)
	}
	return caller.Caller{Scope: by.Scope, Role: caller.Agent, Session: s.ID, Device: ident.Hex(16)}
}

func (b *bench) end(agent caller.Caller) {
	b.t.Helper()
	if err := b.store.Tx(b.t.Context(), agent.Scope, func(tx store.Tx) error { return tx.EndSession(agent.Session, b.now) }); err != nil {
		b.t.Fatal(err)
	}
}

// dot is an image of its own shade.
func dot(t *testing.T, shade uint8) []byte {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, 8, 8))
	m.Set(1, 1, color.Gray{shade})
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (b *bench) attach(agent caller.Caller, data []byte) artifact.Image {
	b.t.Helper()
	by := ana
	by.Scope = agent.Scope
	i, err := b.Attach(b.t.Context(), by, agent.Session, bytes.NewReader(data))
	if err != nil {
		b.t.Fatal(err)
	}
	return i
}

// files are the paths of all files that there are.
func (b *bench) files() (out []string) {
	b.t.Helper()
	err := filepath.WalkDir(b.dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !e.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bench) resolves(agent caller.Caller, id string) bool {
	b.t.Helper()
	p, ok, err := b.Resolve(b.t.Context(), agent, id)
	if err != nil {
		b.t.Fatal(err)
	}
	if ok != p.Valid() || !ok && (p.ID != "" || p.Data.Len() != 0) {
		b.t.Fatalf("%v beside %q with %d bytes", ok, p.ID, p.Data.Len())
	}
	return ok
}

func code(t *testing.T, what string, err error, want fault.Code) {
	t.Helper()
	if !fault.Is(err, want) {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

// UPL-02, UPL-06, section 1 of the design: what is attached is kept whole, in a
// private file, and is told by its content.
func TestAttach(t *testing.T) {
	b := newBench(t, artifact.Quota{})
	agent := b.session(ana)
	data := dot(t, 7)
	i := b.attach(agent, data)
	if i.Type != artifact.PNG || i.Size != int64(len(data)) || i.Width != 8 || !i.ExpiresAt.Equal(b.now.Add(24*time.Hour)) || i.Origin != artifact.Attached {
		t.Errorf("%+v", i)
	}
	files := b.files()
	if len(files) != 1 || filepath.Base(files[0]) != i.SHA256 {
		t.Fatalf("files %v", files)
	}
	for path, mode := range map[string]fs.FileMode{files[0]: 0o600, filepath.Dir(files[0]): 0o700, b.dir: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v (%v)", path, info.Mode(), err)
		}
	}
	p, ok, err := b.Resolve(t.Context(), agent, i.ID)
	if err != nil || !ok || !bytes.Equal(p.Data.Reveal(), data) || p.Name() != i.ID+".png" {
		t.Errorf("resolved %+v, %v, %v", p, ok, err)
	}
	if whole, err := b.Content(t.Context(), ana, agent.Session, i.ID); err != nil || !bytes.Equal(whole.Data.Reveal(), data) {
		t.Errorf("the owner gets %v, %v", whole, err)
	}
	list, err := b.List(t.Context(), ana, agent.Session)
	if err != nil || len(list) != 1 || list[0].ID != i.ID {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestAttachRefuses(t *testing.T) {
	b := newBench(t, artifact.Quota{})
	agent, ended := b.session(ana), b.session(ana)
	b.end(ended)
	_, err := b.Attach(t.Context(), ana, agent.Session, bytes.NewReader([]byte("<svg/>")))
	code(t, "no image", err, fault.UnsupportedMedia)
	_, err = b.Attach(t.Context(), ana, agent.Session, io.MultiReader(bytes.NewReader(dot(t, 1)), bytes.NewReader(make([]byte, artifact.MaxSize))))
	code(t, "too large", err, fault.PayloadTooLarge)
	_, err = b.Attach(t.Context(), ana, agent.Session, io.MultiReader(bytes.NewReader(dot(t, 1)), iotest.ErrReader(errors.New("gone"))))
	code(t, "cut short", err, fault.MalformedRequest)
	_, err = b.Attach(t.Context(), ana, ended.Session, bytes.NewReader(dot(t, 1)))
	code(t, "an ended session", err, fault.Conflict)
	_, err = b.Attach(t.Context(), ana, ident.New(), bytes.NewReader(dot(t, 1)))
	code(t, "no session", err, fault.NotFound)
	_, err = b.Attach(t.Context(), ben, agent.Session, bytes.NewReader(dot(t, 1)))
	code(t, "another's session", err, fault.NotFound)
	_, err = b.Attach(t.Context(), agent, agent.Session, bytes.NewReader(dot(t, 1)))
	code(t, "an agent", err, fault.Forbidden)
	_, err = b.Content(t.Context(), agent, agent.Session, ident.New())
	code(t, "an agent's look", err, fault.Forbidden)
	code(t, "an agent's removal", b.Remove(t.Context(), agent, agent.Session, ident.New()), fault.Forbidden)
	if files := b.files(); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// The quota is a principal's, over all sessions, and what is over it is not read.
func TestQuota(t *testing.T) {
	b := newBench(t, artifact.Quota{Images: 2, Bytes: 1 << 20})
	one, two, other := b.session(ana), b.session(ana), b.session(ben)
	first := b.attach(one, dot(t, 1))
	b.attach(two, dot(t, 2))
	_, err := b.Attach(t.Context(), ana, one.Session, iotest.ErrReader(errors.New("it was read")))
	code(t, "a third image", err, fault.Conflict)
	b.attach(other, dot(t, 3))
	if err := b.Remove(t.Context(), ana, one.Session, first.ID); err != nil {
		t.Fatal(err)
	}
	b.attach(one, dot(t, 4))

	small := newBench(t, artifact.Quota{Images: 9, Bytes: int64(len(dot(t, 1))) + 1})
	agent := small.session(ana)
	small.attach(agent, dot(t, 1))
	_, err = small.Attach(t.Context(), ana, agent.Session, bytes.NewReader(dot(t, 2)))
	code(t, "bytes over the quota", err, fault.Conflict)
	if files := small.files(); len(files) != 1 {
		t.Errorf("files %v", files)
	}
}

// UPL-06: whatever fails one of the checks is not there, and nothing says why.
func TestNotResolvable(t *testing.T) {
	b := newBench(t, artifact.Quota{})
	agent, sibling, stranger := b.session(ana), b.session(ana), b.session(ben)
	i := b.attach(agent, dot(t, 1))
	file := b.files()[0]
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !b.resolves(agent, i.ID) {
		t.Fatal("a good image is refused")
	}
	theirs := stranger
	theirs.Session = agent.Session
	for name, x := range map[string]struct {
		agent caller.Caller
		id    string
	}{"unknown": {agent, ident.New()}, "another session": {sibling, i.ID}, "another principal": {stranger, i.ID}, "another principal with the session's id": {theirs, i.ID}, "a name": {agent, filepath.Base(file)}} {
		if b.resolves(x.agent, x.id) {
			t.Errorf("%s resolves", name)
		}
	}
	changed := bytes.Clone(whole)
	changed[len(changed)-20] ^= 1
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.WriteFile(elsewhere, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"a changed file":       func() error { return os.WriteFile(file, changed, 0o600) },
		"a longer file":        func() error { return os.WriteFile(file, append(bytes.Clone(whole), 0), 0o600) },
		"an empty file":        func() error { return os.WriteFile(file, nil, 0o600) },
		"a file for others":    func() error { return os.Chmod(file, 0o644) },
		"a link to the same":   func() error { return errors.Join(os.Remove(file), os.Symlink(elsewhere, file)) },
		"a missing file":       func() error { return os.Remove(file) },
		"another valid image":  func() error { return os.WriteFile(file, dot(t, 9), 0o600) },
		"an image of our past": func() error { b.now = i.ExpiresAt; return nil },
	} {
		before := b.now
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if b.resolves(agent, i.ID) {
			t.Errorf("%s resolves", name)
		}
		if _, err := b.Content(t.Context(), ana, agent.Session, i.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s is shown to the owner: %v", name, err)
		}
		b.now = before
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		if !b.resolves(agent, i.ID) {
			t.Fatalf("after %s the image does not come back", name)
		}
	}
	b.end(agent)
	if b.resolves(agent, i.ID) {
		t.Error("the image of an ended session resolves")
	}
}

// Two records may share one file, which goes with the last of them; the sweep
// removes what is over, and what a crash left.
func TestSweep(t *testing.T) {
	b := newBench(t, artifact.Quota{})
	one, two := b.session(ana), b.session(ana)
	shared := dot(t, 5)
	first, second := b.attach(one, shared), b.attach(two, shared)
	if len(b.files()) != 1 || first.ID == second.ID {
		t.Fatalf("files %v", b.files())
	}
	if err := b.Remove(t.Context(), ana, one.Session, first.ID); err != nil {
		t.Fatal(err)
	}
	code(t, "a removal again", b.Remove(t.Context(), ana, one.Session, first.ID), fault.NotFound)
	code(t, "a removal in another session", b.Remove(t.Context(), ana, one.Session, second.ID), fault.NotFound)
	code(t, "another's removal", b.Remove(t.Context(), ben, two.Session, second.ID), fault.NotFound)
	if !b.resolves(two, second.ID) {
		t.Fatal("the other record lost its file")
	}
	orphan := filepath.Join(filepath.Dir(b.files()[0]), ".new-0123456789abcdef")
	if err := os.WriteFile(orphan, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	sweep := func() {
		t.Helper()
		if err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if files := b.files(); len(files) != 1 || !b.resolves(two, second.ID) {
		t.Fatalf("after a sweep: %v", files)
	}
	b.end(two)
	sweep()
	third := b.attach(one, dot(t, 6))
	b.now = third.ExpiresAt
	if list, err := b.List(t.Context(), ana, one.Session); err != nil || len(list) != 0 {
		t.Errorf("an expired image is listed: %+v, %v", list, err)
	}
	sweep()
	if files := b.files(); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
	err := b.store.View(t.Context(), ana.Scope, func(tx store.Tx) error {
		used, err := tx.ImageUse()
		if used != (artifact.Use{}) {
			t.Errorf("still counted: %+v", used)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestConfig(t *testing.T) {
	db := newBench(t, artifact.Quota{}).store
	for name, c := range map[string]artifacts.Config{
		"no store": {Dir: "/x", Log: slog.Default()}, "a relative folder": {Store: db, Dir: "x", Log: slog.Default()},
		"too long a list": {Store: db, Dir: "/x", Log: slog.Default(), Quota: artifact.Quota{Images: 201, Bytes: 1}}, "no logger": {Store: db, Dir: "/x"},
	} {
		if _, err := artifacts.New(c); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
