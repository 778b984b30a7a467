// Package isolated assembles chaperone-browserd: the keyring, the vault, the
// workers with their egress, and the two doors of the isolated service
// (HCP-01, LHTTP-05, KEY-01, PROXY-01). It holds no database and no policy.
package isolated

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/browserd"
	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/base/privatefs"
	"github.com/chaperone-agents/chaperone/internal/browser/egress"
	"github.com/chaperone-agents/chaperone/internal/browser/worker"
	"github.com/chaperone-agents/chaperone/internal/daemon/child"
	"github.com/chaperone-agents/chaperone/internal/edge/ceremonyweb"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/internal/edge/sessionapi"
	"github.com/chaperone-agents/chaperone/internal/vault"
	"github.com/chaperone-agents/chaperone/internal/vault/keyring"
)

// Config is everything chaperone-browserd is told; Dev may be nil.
type Config struct {
	Socket            string // absolute path
	ServiceCredential string // absolute path
	Keys              string // absolute path of the keyring folder
	Profiles          string // absolute path of the vault folder
	EgressLog         string // absolute path
	CeremonyListen    string // 127.0.0.1:port or [::1]:port; the port is taken on both
	Create            bool   // make keyring, vault folder and credential if there are none
	Worker            string // path of chaperone-worker
	Chromium          string
	Xvfb              string
	Isolation         string // "namespaces" or "weak"
	Capacity          int
	Dev               *devmode.Config
	Log               *slog.Logger
}

const shutdown = 15 * time.Second // to seal healthy leases

// Run serves until ctx ends. announce is called once, when everything answers;
// its address is the sign-in surface's.
func Run(ctx context.Context, c Config, announce func(child.Ready) error) error {
	for _, path := range []string{c.Socket, c.ServiceCredential, c.Keys, c.Profiles, c.EgressLog} {
		if !filepath.IsAbs(path) {
			return errors.New("--socket, --service-credential, --keys, --profiles and --egress-log are all needed")
		}
	}
	if c.Create {
		if err := create(c); err != nil {
			return err
		}
	}
	credential, err := privatefs.ReadSecretFile(c.ServiceCredential)
	if err != nil {
		return fmt.Errorf("service credential: %w", err)
	}
	sealed, err := vault.Open(vault.Config{Dir: c.Profiles, KeyDir: c.Keys})
	if err != nil {
		return err
	}
	defer sealed.Close()
	audit, err := openEgressLog(c.EgressLog, c.Log)
	if err != nil {
		return err
	}
	defer audit.Close()
	launcher, err := worker.NewLauncher(c.worker(audit.Write))
	if err != nil {
		return err
	}
	surfaces, err := listenLoopback(c.CeremonyListen)
	if err != nil {
		return fmt.Errorf("%s cannot be listened on: %w; choose another address with --ceremony-listen", c.CeremonyListen, err)
	}
	for _, l := range surfaces {
		defer l.Close()
	}
	address := surfaces[0].Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	origin := "http://localhost:" + port
	service, err := browserd.New(browserd.Config{Vault: sealed, Launcher: launcher, CeremonyBase: origin, Capacity: c.Capacity, Log: c.Log})
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown)
		defer cancel()
		service.Shutdown(stopping)
	}()
	control, err := sessionapi.New(sessionapi.Config{Service: service, Credential: credential, Log: c.Log})
	if err != nil {
		return err
	}
	pages, err := ceremonyweb.New(ceremonyweb.Config{Service: service, Origin: origin, Log: c.Log})
	if err != nil {
		return err
	}
	door, err := listenUnix(c.Socket)
	if err != nil {
		return err
	}
	defer door.Close()
	doors := map[net.Listener]http.Handler{door: control}
	for _, l := range surfaces {
		doors[l] = pages
	}
	failed := make(chan error, len(doors))
	for listener, handler := range doors {
		server := httpx.Server(handler)
		defer server.Close()
		go func() { failed <- server.Serve(listener) }()
	}
	if err := announce(child.Ready{Address: address}); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (c Config) worker(audit func(egress.Decision) error) worker.Config {
	return worker.Config{
		Binary: c.Worker, Isolation: c.Isolation, Chromium: c.Chromium, Xvfb: c.Xvfb,
		Dev: c.Dev, Audit: audit, Log: c.Log,
	}
}

// Probe checks what browsers need on this machine.
func Probe(ctx context.Context, c Config) []worker.Check {
	c.Log = slog.New(slog.DiscardHandler) // the checks say what there is to say
	return worker.Probe(ctx, c.worker(func(egress.Decision) error { return nil }))
}

// create makes what the embedded default needs, once; what exists is kept.
func create(c Config) error {
	if _, err := os.Lstat(c.Keys); errors.Is(err, fs.ErrNotExist) {
		if err := keyring.Generate(c.Keys); err != nil {
			return err
		}
	}
	if err := os.Mkdir(c.Profiles, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("profile folder: %w", err)
	}
	if err := privatefs.WriteSecretFile(c.ServiceCredential); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("service credential: %w", err)
	}
	return nil
}

// listenUnix listens on a socket that only this user can connect to, in place
// of one that an earlier process left behind. The folder is private and locked
// by the supervisor, so nobody else can be listening there.
func listenUnix(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
