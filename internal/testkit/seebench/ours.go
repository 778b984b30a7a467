package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
)

// startOurs starts `chaperone up` and an agent's `chaperone mcp` on it.
func startOurs(ctx context.Context, o options, temp, dev string) (*system, error) {
	bin, err := filepath.Abs(filepath.Join(o.bin, "chaperone"))
	if err != nil {
		return nil, err
	}
	data, log := filepath.Join(temp, "data"), &tail{}
	up := exec.Command(bin, "--data", data, "up", "--json", "--listen", "127.0.0.1:0", "--dev", dev)
	up.Stderr, up.SysProcAttr = log, withUs()
	out, err := up.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := up.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	s := &system{name: "chaperone", navigate: "browser.navigate", snapshot: "browser.observe", inNavigate: true, act: oursAct, end: func() error {
		up.Process.Signal(syscall.SIGINT)
		select {
		case <-ended:
			return nil
		case <-time.After(60 * time.Second):
			up.Process.Kill()
			<-ended
			return errors.New("chaperone up did not stop within a minute")
		}
	}}
	ready := make(chan error, 1)
	go func() {
		defer close(ended)
		lines := bufio.NewReader(out)
		_, err := lines.ReadString('\n')
		ready <- err
		io.Copy(io.Discard, lines)
		up.Wait()
	}()
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("chaperone up did not start: %w: %s", err, log), s.end())
	}
	if err := s.connect(ctx, exec.CommandContext(ctx, bin, "--data", data, "mcp", "--ephemeral", "--origin", "https://"+host)); err != nil {
		return nil, err
	}
	s.family = func() (leak.Which, error) {
		services, err := leak.Family(up.Process.Pid)
		if err != nil {
			return nil, err
		}
		bridge, err := leak.Family(s.cmd.Process.Pid)
		return leak.Any(services, bridge), err
	}
	return s, nil
}

func oursAct(one act, shown string) (string, map[string]any, error) {
	var view struct {
		Revision string
		Elements []struct{ Ref, Name string }
	}
	if err := json.Unmarshal([]byte(shown), &view); err != nil {
		return "", nil, err
	}
	for _, e := range view.Elements {
		if e.Name == one.name {
			args := map[string]any{"kind": one.kind, "expected_revision": view.Revision, "ref": e.Ref}
			if one.value != "" {
				args["value"] = one.value
			}
			return "browser.act", args, nil
		}
	}
	return "", nil, fmt.Errorf("chaperone shows no %q: %.500s", one.name, shown)
}
