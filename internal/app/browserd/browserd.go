// Package browserd is the isolated browser service without its doors: who may
// have a browser, for how long, and what becomes of the session in it. It
// joins the vault, which keeps sessions, with the launcher, which runs them.
//
// It covers the lifecycle of sealed profiles (HCP-02 to HCP-04), leases
// (LEASE-01 to LEASE-10, RENEW-01, PLACE-01, PLACE-02, EPH-02), the cap on
// browsers (CAPY-01, CAPY-02), and remote sign-ins with the rule that decides
// them (CER-01, CER-02, CER-05 to CER-07, READY-01 to READY-04, SWEEP-02,
// SWEEP-03). Everything live is in memory: a restart ends every lease and
// every sign-in, and what was sealed last is what remains.
package browserd

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/vault"
)

// ProviderName names this service in profile records.
const ProviderName = "hosted-isolated"

const (
	defaultCapacity = 3                // browsers at once (CAPY-01)
	sweepPeriod     = 15 * time.Second // SWEEP-02
	launchLimit     = 30 * time.Second // from an empty slot to a restored page
	sealLimit       = 20 * time.Second // to read and seal a session
)

// Vault is what this service needs of *vault.Vault, which documents each
// method. A record of another scope behaves as an absent one.
type Vault interface {
	Create(scope caller.Scope, profileID string, origins site.Origins) (vault.Record, error)
	Lookup(scope caller.Scope, profileID, ref string) (vault.Record, error)
	Load(scope caller.Scope, profileID, ref string) (secret.Bytes, error)
	Seal(scope caller.Scope, profileID, ref string, plaintext secret.Bytes) error
	Revoke(scope caller.Scope, profileID, ref string) error
	Delete(scope caller.Scope, profileID, ref string) error
}

// Config is everything a Service needs.
type Config struct {
	Vault    Vault
	Launcher browser.Launcher
	// CeremonyBase is the origin of the sign-in pages, such as
	// http://localhost:8788. Its host must differ from the console's, so that
	// neither page gets the other's cookies.
	CeremonyBase string
	Capacity     int              // browsers at once; 3 when zero
	Now          func() time.Time // time.Now when nil
	Log          *slog.Logger
}

// Service is the isolated browser service. It implements browser.Service for
// one process; Dispatch and Claim are for its two doors.
type Service struct {
	vault    Vault
	launcher browser.Launcher
	base     string
	capacity int
	now      func() time.Time
	log      *slog.Logger
	key      []byte // of this process; makes references and hides them

	stop context.CancelFunc
	work sync.WaitGroup

	mu         sync.Mutex // never held while a browser or the vault works
	closed     bool
	slots      map[*runtime]bool
	leases     map[digest]*held
	keys       map[string]*held // by the lease key's fingerprint
	ceremonies map[string]*signIn
}

var _ browser.Service = (*Service)(nil)

// New validates the configuration and starts the sweep. Shutdown ends it.
func New(c Config) (*Service, error) {
	u, err := url.Parse(c.CeremonyBase)
	switch {
	case c.Vault == nil || c.Launcher == nil || c.Log == nil:
		return nil, errors.New("browserd: a vault, a launcher and a logger are needed")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || c.CeremonyBase != u.Scheme+"://"+u.Host:
		return nil, errors.New("browserd: the ceremony base must be an origin such as http://localhost:8788")
	case c.Capacity < 0 || c.Capacity > 64:
		return nil, errors.New("browserd: the capacity must be between 1 and 64 browsers")
	}
	if c.Capacity == 0 {
		c.Capacity = defaultCapacity
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Service{
		vault: c.Vault, launcher: c.Launcher, base: c.CeremonyBase, capacity: c.Capacity, now: c.Now, log: c.Log,
		key: make([]byte, 32), stop: stop,
		slots: map[*runtime]bool{}, leases: map[digest]*held{}, keys: map[string]*held{}, ceremonies: map[string]*signIn{},
	}
	rand.Read(s.key)
	s.work.Go(func() { s.sweepEvery(ctx, sweepPeriod) })
	return s, nil
}

// Ready reports whether the service takes work (LHTTP-05).
func (s *Service) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed
}

// Shutdown refuses new work and closes every browser: healthy leases are
// sealed, sign-ins are thrown away. When ctx ends first, what is still open is
// closed without sealing. It returns when no browser is left.
func (s *Service) Shutdown(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	leases, ceremonies := make([]*held, 0, len(s.leases)), s.openCeremonies()
	for _, l := range s.leases {
		leases = append(leases, l)
	}
	s.mu.Unlock()
	release := context.AfterFunc(ctx, func() {
		for _, rt := range s.running(nil) {
			s.end(rt)
		}
	})
	defer release()
	var all sync.WaitGroup
	for _, c := range ceremonies {
		all.Go(func() { s.conclude(c, cancelled) })
	}
	for _, l := range leases {
		all.Go(func() {
			if err := s.closeLease(ctx, l); err != nil {
				s.log.Warn("a lease was not sealed at shutdown", "code", fault.CodeOf(err))
			}
		})
	}
	all.Wait()
	for _, rt := range s.running(nil) { // launches that were under way
		s.end(rt)
	}
	s.stop()
	s.work.Wait()
}

// spawn runs f beside the callers unless the service is closing anyway.
func (s *Service) spawn(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Go(f)
	}
}

// sweepEvery closes what expired until ctx ends.
func (s *Service) sweepEvery(ctx context.Context, period time.Duration) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.sweep()
		}
	}
}

func (s *Service) sweep() {
	now := s.now()
	s.mu.Lock()
	var expired []*held
	for _, l := range s.leases {
		if !now.Before(l.expires) {
			expired = append(expired, l)
		}
	}
	s.forgetCeremonies(now)
	s.mu.Unlock()
	for _, l := range expired {
		s.retire(l)
	}
}

// digest hides a reference or capability in memory: without the key of this
// process it says nothing, and an equal one can be looked up (LEASE-10).
type digest [sha256.Size]byte

func (s *Service) digest(purpose, value string) digest {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(purpose + "\x00" + value))
	return digest(m.Sum(nil))
}

// token spells the digest for its holder.
func (d digest) token() string { return base64.RawURLEncoding.EncodeToString(d[:]) }

// owner is whose browser a runtime is. The zero owner is an ephemeral one's.
type owner struct {
	caller.Scope
	profileID string
}
