// Package orchestrator assembles chaperoned: metadata, policy, approvals,
// audit, the owner API, the console and MCP. It holds no key and no page
// (design section 1, HCP-01).
package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/access"
	"github.com/chaperone-agents/chaperone/internal/app/artifacts"
	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/app/notify"
	"github.com/chaperone-agents/chaperone/internal/app/owner"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/base/privatefs"
	"github.com/chaperone-agents/chaperone/internal/base/version"
	"github.com/chaperone-agents/chaperone/internal/browser/remote"
	"github.com/chaperone-agents/chaperone/internal/daemon/child"
	"github.com/chaperone-agents/chaperone/internal/edge/consoleweb"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/internal/edge/mcpserver"
	"github.com/chaperone-agents/chaperone/internal/edge/ownerapi"
	"github.com/chaperone-agents/chaperone/internal/store/sqlite"
)

// Config is everything chaperoned is told; Dev may be nil.
type Config struct {
	Database          string // absolute path
	Images            string // absolute path of the folder for attached images
	Browserd          string // absolute path of the isolated service's socket
	ServiceCredential string // absolute path
	OwnerCredential   string // absolute path; written for the command line
	Listen            string // loopback host:port
	ApprovalWait      time.Duration
	ToolNames         mcpserver.Names
	Headless          bool
	Dev               *devmode.Config
	Log               *slog.Logger
}

// embedded is the one scope of the embedded default.
var embedded = caller.Scope{Tenant: "local", Principal: "owner"}

const (
	upkeepEvery = 15 * time.Second // SWEEP-01, SWEEP-02
	shutdown    = 15 * time.Second
)

// Run serves until ctx ends. announce is called once, when everything answers.
func Run(ctx context.Context, c Config, announce func(child.Ready) error) error {
	db, err := sqlite.Open(sqlite.Config{Path: c.Database, Log: c.Log})
	if err != nil {
		return err
	}
	defer db.Close()
	credential, err := privatefs.ReadSecretFile(c.ServiceCredential)
	if err != nil {
		return fmt.Errorf("service credential: %w", err)
	}
	service, err := remote.New(remote.Config{Socket: c.Browserd, Credential: credential})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("%s cannot be listened on: %w; choose another address with --listen", c.Listen, err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	console := "http://" + address

	hub := notify.New()
	devices, err := access.New(access.Config{Store: db, Log: c.Log})
	if err != nil {
		return err
	}
	images, err := artifacts.New(artifacts.Config{Store: db, Dir: c.Images, Log: c.Log})
	if err != nil {
		return err
	}
	calls, err := broker.New(broker.Config{
		Store: db, Service: service, Hub: hub, ApprovalWait: c.ApprovalWait, Headless: c.Headless,
		ApprovalURL: func(id string) string { return consoleweb.ApprovalURL(console, id) },
		Images:      images,
		ApproveAll:  c.Dev != nil && c.Dev.ApproveAll, Log: c.Log,
	})
	if err != nil {
		return err
	}
	cases, err := owner.New(owner.Config{Store: db, Service: service, Devices: devices, Leases: calls, Hub: hub, Log: c.Log})
	if err != nil {
		return err
	}
	handler, err := routes(c, address, cases, devices, calls, images, hub)
	if err != nil {
		return err
	}
	if err := devices.EndConsoles(ctx, embedded); err != nil {
		return err
	}
	if err := devices.OwnerFile(ctx, embedded, c.OwnerCredential); err != nil {
		return err
	}
	if n, err := calls.Recover(ctx); err != nil {
		return err
	} else if n > 0 {
		c.Log.Warn("calls of an earlier process have an unknown outcome; they are not repeated", "calls", n)
	}
	return serve(ctx, c, listener, handler, calls, cases, images, func() error {
		return announce(child.Ready{Address: address, Code: devices.NewLoginCode(embedded).Reveal()})
	})
}

// routes mounts the three doors behind one guard.
func routes(c Config, address string, cases *owner.Owner, devices *access.Access, calls *broker.Broker, images *artifacts.Artifacts, hub *notify.Hub) (http.Handler, error) {
	// Not under the name localhost: that is the sign-in surface's, which must
	// never be sent the console's cookie.
	guard := httpx.Guard{Hosts: []string{address}, Origins: []string{"http://" + address}}
	api, err := ownerapi.New(ownerapi.Config{Owner: cases, Access: devices, Calls: calls, Images: images, Hub: hub, Guard: guard, Console: "http://" + address, Log: c.Log})
	if err != nil {
		return nil, err
	}
	agents, err := mcpserver.New(mcpserver.Config{
		Broker: calls, Authenticate: devices.Authenticate, Version: version.String(), Names: c.ToolNames, Hub: hub, Log: c.Log,
		EndSession: func(ctx context.Context, agent caller.Caller) error {
			return cases.EndSession(ctx, caller.Caller{Scope: agent.Scope, Role: caller.Owner}, agent.Session)
		},
	})
	if err != nil {
		return nil, err
	}
	tools := http.NewServeMux()
	agents.Mount(tools)
	mux := http.NewServeMux()
	mux.Handle("/mcp", guard.Wrap(tools))
	mux.Handle("/mcp/", guard.Wrap(tools))
	mux.Handle("/v1/", api)
	mux.Handle("/health/", api)
	mux.Handle("/", consoleweb.New(consoleweb.Config{Guard: guard}))
	return mux, nil
}

// serve answers requests and tends leases and records until ctx ends; then it
// stops taking requests, closes every lease, and returns.
func serve(ctx context.Context, c Config, listener net.Listener, handler http.Handler, calls *broker.Broker, cases *owner.Owner, images *artifacts.Artifacts, ready func() error) error {
	server := httpx.Server(handler)
	// Streams and waiting calls end with the server, not with their clients.
	requests, endRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer endRequests()
	server.BaseContext = func(net.Listener) context.Context { return requests }
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	var tending sync.WaitGroup
	upkeep, endUpkeep := context.WithCancel(context.WithoutCancel(ctx))
	defer endUpkeep()
	tending.Go(func() {
		ticker := time.NewTicker(upkeepEvery)
		defer ticker.Stop()
		for {
			if err := cases.Upkeep(upkeep); err != nil && upkeep.Err() == nil {
				c.Log.Error("upkeep failed", "cause", err)
			}
			calls.Upkeep(upkeep)
			if err := images.Sweep(upkeep); err != nil && upkeep.Err() == nil {
				c.Log.Error("images not swept", "cause", err)
			}
			select {
			case <-ticker.C:
			case <-upkeep.Done():
				return
			}
		}
	})
	err := ready()
	if err == nil {
		select {
		case err = <-failed:
		case <-ctx.Done():
		}
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown)
	defer cancel()
	endUpkeep()
	tending.Wait()
	calls.Shutdown(stopping)
	endRequests()
	closed := server.Shutdown(stopping)
	if errors.Is(closed, context.DeadlineExceeded) {
		closed = server.Close()
	}
	return errors.Join(err, closed)
}
