// Command seebench compares what seeing a page costs with Chaperone and with
// the tool that most agents use today, @playwright/mcp: same Chromium, same
// generated pages from one TLS site, both over MCP stdio, in turns within one
// run. It prints one table and the targets beside the figures (OPD, BND, PROJ,
// SETL); only a failure to measure is an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

type options struct {
	bin, peer, chromium string
	rounds              int
	limit               time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "folder of the programs")
	flag.StringVar(&o.peer, "peer", "@playwright/mcp@0.0.83", "npm package to compare with")
	flag.StringVar(&o.chromium, "chromium", "/usr/lib/chromium/chromium", "the browser binary, for both")
	flag.IntVar(&o.rounds, "rounds", 9, "measurements per figure")
	flag.DurationVar(&o.limit, "limit", 8*time.Minute, "when to give up")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "seebench:", err)
		cancel()
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.rounds < 1 {
		return errors.New("at least one round")
	}
	temp, err := os.MkdirTemp("", "seebench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := os.Chmod(temp, 0o711); err != nil { // the peer's user must get to its own folder
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	site, err := practice.Start(practice.Config{Hosts: map[string]http.Handler{host: pageHandler()}, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.Close()) }()

	say("Installing %s into a temporary folder.", o.peer)
	peer, err := installPeer(ctx, o, filepath.Join(temp, "peer"), site.Addr())
	if err != nil {
		return err
	}
	theirs, err := peer.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, theirs.stop()) }()
	dev, err := site.DevFile(temp)
	if err != nil {
		return err
	}
	ours, err := startOurs(ctx, o, temp, dev)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.stop()) }()

	in, err := startInside(ctx, o, dev)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.browser.Close()) }()
	f, err := measure(ctx, [2]*system{ours, theirs}, in, o.rounds)
	if len(f.pages) > 0 {
		f.printPages(os.Stdout)
		f.printPhases(os.Stdout)
	}
	if err == nil {
		f.printTotals(os.Stdout)
	}
	return err
}

// say tells the person at the terminal what goes on.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
