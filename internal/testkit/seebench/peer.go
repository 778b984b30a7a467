package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
)

// peerUID is who the peer runs as when this is root: Chromium keeps its
// sandbox only for an ordinary user.
const peerUID = 61791

// peer is the installed npm package.
type peer struct {
	dir, program, config, version string
}

// installPeer installs the package without a browser of its own, and points
// it at the same Chromium, with its sandbox on, and at the same site.
func installPeer(ctx context.Context, o options, dir string, site netip.AddrPort) (*peer, error) {
	p := &peer{dir: dir, config: filepath.Join(dir, "config.json")}
	for _, d := range []string{dir, filepath.Join(dir, "tmp")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, err
		}
		if os.Geteuid() == 0 {
			if err := os.Chown(d, peerUID, peerUID); err != nil {
				return nil, err
			}
		}
	}
	config, err := json.Marshal(map[string]any{"browser": map[string]any{
		"browserName": "chromium", "isolated": true,
		"launchOptions": map[string]any{
			"headless": true, "executablePath": o.chromium, "chromiumSandbox": true,
			"args": []string{fmt.Sprintf("--host-resolver-rules=MAP %s %s", host, site)},
		},
		"contextOptions": map[string]any{"ignoreHTTPSErrors": true, "viewport": map[string]int{"width": 1280, "height": 800}},
	}})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(p.config, config, 0o644); err != nil {
		return nil, err
	}
	npm := p.command(ctx, "npm", "install", "--no-audit", "--no-fund", "--prefix", dir, o.peer)
	if out, err := npm.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm install %s: %w: %.1000s", o.peer, err, out)
	}
	programs, err := filepath.Glob(filepath.Join(dir, "node_modules", "@*", "*", "cli.js"))
	if err != nil || len(programs) != 1 {
		return nil, fmt.Errorf("%s has %d command lines instead of one", o.peer, len(programs))
	}
	p.program = programs[0]
	version, err := p.command(ctx, "node", p.program, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", o.peer, err)
	}
	p.version = strings.TrimSpace(strings.TrimPrefix(string(version), "Version "))
	return p, nil
}

// command is a program of the peer, as its user and in its folder.
func (p *peer) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = p.dir
	c.Env = append(os.Environ(), "HOME="+p.dir, "TMPDIR="+filepath.Join(p.dir, "tmp"), "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1")
	c.SysProcAttr = withUs()
	if os.Geteuid() == 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: peerUID, Gid: peerUID, Groups: []uint32{}}
	}
	return c
}

func (p *peer) start(ctx context.Context) (*system, error) {
	s := &system{name: "playwright " + p.version, navigate: "browser_navigate", snapshot: "browser_snapshot", mayGiveUp: true, act: peerAct}
	if err := s.connect(ctx, p.command(ctx, "node", p.program, "--config", p.config)); err != nil {
		return nil, err
	}
	s.family = func() (leak.Which, error) {
		children, err := leak.Family(s.cmd.Process.Pid)
		return leak.Any(children, leak.ByMarker(p.dir)), err
	}
	return s, nil
}

// peerAct uses the tool and the reference that an agent would.
func peerAct(one act, shown string) (string, map[string]any, error) {
	ref := regexp.MustCompile(`(?m)^\s*- ` + one.role + ` "` + regexp.QuoteMeta(one.name) + `"[^\n]*\[ref=(\w+)\]`).FindStringSubmatch(shown)
	if ref == nil {
		return "", nil, fmt.Errorf("the peer shows no %s %q: %.500s", one.role, one.name, shown)
	}
	args := map[string]any{"target": ref[1], "element": one.name}
	switch one.kind {
	case "click":
		return "browser_click", args, nil
	case "type":
		args["text"] = one.value
		return "browser_type", args, nil
	default:
		args["values"] = []string{one.value}
		return "browser_select_option", args, nil
	}
}
