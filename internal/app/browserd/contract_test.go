package browserd_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/browserd"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/browser/servicetest"
	"github.com/chaperone-agents/chaperone/internal/vault"
	"github.com/chaperone-agents/chaperone/internal/vault/keyring"
)

// clock is a time that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) Now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }

// log keeps what the service wrote, for the leak checks.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// realVault is the vault itself on a fresh directory.
func realVault(t *testing.T) *vault.Vault {
	t.Helper()
	root := t.TempDir()
	dir, keys := filepath.Join(root, "sealed"), filepath.Join(root, "keys")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := keyring.Generate(keys); err != nil {
		t.Fatal(err)
	}
	v, err := vault.Open(vault.Config{Dir: dir, KeyDir: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// start makes a service that is shut down before the test's other cleanups.
func start(t *testing.T, c browserd.Config) *browserd.Service {
	t.Helper()
	if c.CeremonyBase == "" {
		c.CeremonyBase = "http://localhost:8788"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s, err := browserd.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		s.Shutdown(ctx)
	})
	return s
}

// The service keeps the contract over the real vault (GATE-01).
func TestServiceContract(t *testing.T) {
	servicetest.Run(t, func(t *testing.T) servicetest.Subject {
		c, w := &clock{}, &fake.World{}
		s := start(t, browserd.Config{Vault: realVault(t), Launcher: w, Now: c.Now})
		return servicetest.Subject{Service: s, World: w, Now: c.Now, Advance: c.Advance}
	})
}

var _ browser.Service = (*browserd.Service)(nil)
