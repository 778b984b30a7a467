// Command practice serves the practice site until it is interrupted, for
// demonstrations and outside test harnesses (GATE-01).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

func main() {
	dir := flag.String("dir", ".", "where to write practice.yaml and practice-ca.pem")
	listen := flag.String("listen", "127.0.0.1:0", "loopback address of the site")
	flag.Parse()
	if err := run(*dir, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "practice:", err)
		os.Exit(1)
	}
}

// run prints one JSON line when the site answers: dev (the file for --dev),
// control, and the state.
func run(dir, listen string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s, err := practice.Start(practice.Config{Listen: listen, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	defer s.Close()
	dev, err := s.DevFile(dir)
	if err != nil {
		return err
	}
	line := map[string]any{"event": "ready", "dev": dev, "control": s.Control(), "addr": s.Addr().String(), "names": s.Names(), "accounts": s.Accounts()}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
