// Command seebench compares what seeing a page costs, or with --acts what acting
// on one does, with Chaperone and with the tool that most agents use today,
// @playwright/mcp: same Chromium, same generated pages from one TLS site, both
// over MCP stdio, in turns within one run. It prints one table and the targets
// beside the figures (OPD, BND, PROJ, SETL, CLK); only a failure to measure is
// an error.
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
	acts                bool
	rounds              int
	limit               time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "folder of the programs")
	flag.StringVar(&o.peer, "peer", "@playwright/mcp@0.0.83", "npm package to compare with")
	flag.StringVar(&o.chromium, "chromium", "/usr/lib/chromium/chromium", "the browser binary, for both")
	flag.BoolVar(&o.acts, "acts", false, "measure acts instead of observations")
	flag.IntVar(&o.rounds, "rounds", 9, "measurements per figure")
	flag.DurationVar(&o.limit, "limit", 20*time.Minute, "when to give up")
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
	did := newEffects()
	site, err := practice.Start(practice.Config{Hosts: map[string]http.Handler{host: pageHandler(did)}, Log: log})
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
	dev, err := devFile(site, temp, o.acts)
	if err != nil {
		return err
	}
	ours, err := startOurs(ctx, o, temp, dev)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.stop()) }()

	both := [2]*system{ours, theirs}
	if o.acts {
		f, err := measureActs(ctx, both, did, o.rounds)
		f.print(os.Stdout)
		return err
	}
	in, err := startInside(ctx, o, dev)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.browser.Close()) }()
	f, err := measure(ctx, both, in, o.rounds)
	if len(f.pages) > 0 {
		f.printPages(os.Stdout)
		f.printPhases(os.Stdout)
	}
	if err == nil {
		f.printTotals(os.Stdout)
	}
	return err
}

// devFile is the file for development mode. For acts the owner's answer is
// always yes: the wait for a person is not what is measured.
func devFile(site *practice.Site, dir string, approveAll bool) (string, error) {
	path, err := site.DevFile(dir)
	if err != nil || !approveAll {
		return path, err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString("approve_all: true\n")
	return path, errors.Join(err, f.Close())
}

// say tells the person at the terminal what goes on.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
