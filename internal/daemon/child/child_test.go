package child_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/daemon/child"
)

// program is a shell script that plays a supervised program.
func program(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const ready = `echo '{"event":"ready","address":"127.0.0.1:1","code":"c"}'` + "\n"

// What a child gets of the owner's shell is a short list: no credential and no
// proxy setting of it (KEY-02).
func TestStart(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "planted")
	t.Setenv("https_proxy", "http://planted.example")
	var log bytes.Buffer
	p, r, err := child.Start(t.Context(), program(t, "env >&2\necho noise\n"+ready+"cat >/dev/null\n"), nil, &log)
	if err != nil {
		t.Fatal(err)
	}
	if r.Address != "127.0.0.1:1" || r.Code != "c" {
		t.Errorf("ready: %+v", r)
	}
	p.Stop(0)
	if strings.Contains(log.String(), "planted") || !strings.Contains(log.String(), "PATH=") {
		t.Errorf("environment:\n%s", &log)
	}
}

// Every start that fails leaves no process behind and says what happened.
func TestStartFails(t *testing.T) {
	for name, c := range map[string]struct {
		path  string
		limit time.Duration
		says  string
	}{
		"absent":      {"/nonexistent/program", time.Minute, "cannot be started"},
		"ends":        {program(t, "exit 3\n"), time.Minute, "exit status 3"},
		"ends well":   {program(t, "echo '{\"event\":\"other\"}'\n"), time.Minute, "stopped by itself"},
		"never ready": {program(t, "exec sleep 1000\n"), time.Second, "context deadline exceeded"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), c.limit)
		p, _, err := child.Start(ctx, c.path, nil, os.Stderr)
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.says) || p != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A child is asked first and ended by force afterwards.
func TestStop(t *testing.T) {
	asked, _, err := child.Start(t.Context(), program(t, "trap 'exit 7' TERM\n"+ready+"while :; do sleep 0.01; done\n"), nil, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	asked.Stop(time.Minute)
	if err := asked.Err(); err == nil || err.Error() != "exit status 7" {
		t.Errorf("asked: %v", err)
	}
	deaf, _, err := child.Start(t.Context(), program(t, "trap '' TERM\n"+ready+"while :; do sleep 0.01; done\n"), nil, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	deaf.Stop(50 * time.Millisecond)
	if err := deaf.Err(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("deaf: %v", err)
	}
}
