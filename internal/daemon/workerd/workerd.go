// Package workerd assembles the worker program: the first process of the
// namespaces, and the server that drives one browser for whoever holds the
// other end of the pipe (EPH-01, ISO-01). It links no store, no vault and no
// listener: what it cannot link, it cannot leak.
package workerd

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/chaperone-agents/chaperone/internal/base/version"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/browser/isolate"
	"github.com/chaperone-agents/chaperone/internal/browser/worker/pipe"
)

const byHand = "chaperone-worker is started by chaperone-browserd; by hand it answers only --help and --version."

// Run is the program: arguments in, exit status out.
func Run(args []string) int {
	if len(args) >= 2 {
		switch args[1] {
		case isolate.VerbInit:
			return isolate.Init(args[2:])
		case isolate.VerbServe:
			return serve()
		case "--version":
			fmt.Println("chaperone-worker", version.String())
			return 0
		case "--help":
			fmt.Println(byHand)
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, byHand)
	return 2
}

func serve() int {
	isolate.Rename()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	conn, err := isolate.Pipe()
	if err == nil {
		err = isolate.Seal()
	}
	if err == nil {
		err = pipe.Serve(context.Background(), conn, launcher(log))
	}
	if err != nil {
		log.Error("worker ended", "error", err)
		return 1
	}
	return 0
}

// launcher starts the browser. Its failures are logged with their cause, which
// is safe before any page exists; later ones are not logged at all.
func launcher(log *slog.Logger) pipe.Launch {
	return func(ctx context.Context, s pipe.Setup) (browser.Page, error) {
		if len(s.TrustedCA) > 0 {
			log.Warn("chaperone-worker: DEVELOPMENT MODE: this browser trusts a practice certificate authority")
		}
		page, err := driver.Launch(ctx, driver.Config{
			Origins: s.Origins, Headed: s.Headed, Challenges: s.Challenges, Specified: s.Specified, Proxy: s.Proxy, Home: s.Home, PolicyDir: s.PolicyDir,
			Chromium: s.Chromium, Xvfb: s.Xvfb, TrustedCA: s.TrustedCA, Log: log,
		})
		if err != nil {
			log.Error("browser did not start", "error", err)
			return nil, err
		}
		return page, nil
	}
}
