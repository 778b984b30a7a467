package up_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/daemon/datadir"
	"github.com/chaperone-agents/chaperone/internal/daemon/up"
)

// programs is a folder of shell scripts that play the two services. Both note
// their start and their orderly end in the file events.
func programs(t *testing.T, browserd, chaperoned string) (config up.Config, events string) {
	t.Helper()
	bin := t.TempDir()
	events = filepath.Join(bin, "events")
	for name, body := range map[string]string{"chaperone-browserd": browserd, "chaperoned": chaperoned} {
		script := "#!/bin/sh\necho start " + name + " >>" + events + "\ntrap 'echo end " + name + " >>" + events + "; exit 0' TERM\n" +
			`echo '{"event":"ready","address":"127.0.0.1:4711","code":"c"}'` + "\n" + body
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return up.Config{
		DataDir: filepath.Join(bin, "data"), Listen: "127.0.0.1:0", Ceremony: "127.0.0.1:0", Isolation: "namespaces",
		ToolNames: "dotted", Bin: bin, ChildLog: io.Discard, Log: slog.New(slog.DiscardHandler),
	}, events
}

const stay = "while :; do sleep 0.01; done\n"

// Services start and stop in the one order in which nothing is lost, and the
// note for clients is there exactly as long as they run (HCP-01).
func TestOrder(t *testing.T) {
	config, events := programs(t, stay, stay)
	dir := datadir.Dir(config.DataDir)
	ctx, cancel := context.WithCancel(t.Context())
	var found up.Running
	err := up.Run(ctx, config, func(r up.Running) {
		var err error
		if found, err = up.Find(dir); err != nil {
			t.Error(err)
		}
		if r.LoginCode != "c" || found.LoginCode != "" {
			t.Errorf("login code %q, in the note %q", r.LoginCode, found.LoginCode)
		}
		if err := up.Run(t.Context(), config, nil); !errors.Is(err, datadir.ErrRunning) {
			t.Errorf("a second one: %v", err)
		}
		cancel()
	})
	if err != nil || found.Console != "http://127.0.0.1:4711" || found.Ceremony != "http://localhost:4711" {
		t.Errorf("%+v, %v", found, err)
	}
	body, err := os.ReadFile(events)
	if want := "start chaperone-browserd\nstart chaperoned\nend chaperoned\nend chaperone-browserd\n"; err != nil || string(body) != want {
		t.Errorf("%v\n%s", err, body)
	}
	if _, err := up.Find(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("afterwards: %v", err)
	}
}

// A note that outlived its writer is no running Chaperone.
func TestStaleNote(t *testing.T) {
	dir, err := datadir.Prepare(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.Running(), []byte(`{"console":"http://127.0.0.1:1","pid":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := up.Find(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("found: %v", err)
	}
}

// A service that dies again and again ends the run with its name, and the
// other one is stopped in order.
func TestGivesUpOnAFaultThatStays(t *testing.T) {
	config, events := programs(t, stay, "exit 1\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := up.Run(ctx, config, func(up.Running) {})
	if err == nil || !strings.Contains(err.Error(), "chaperoned ended") {
		t.Errorf("%v", err)
	}
	body, err := os.ReadFile(events)
	if err != nil || strings.Count(string(body), "start chaperone-browserd") != 1 || !strings.HasSuffix(string(body), "end chaperone-browserd\n") {
		t.Errorf("%v\n%s", err, body)
	}
}

// Only loopback, and nothing is made before that is checked.
func TestRefusesOtherAddresses(t *testing.T) {
	for _, address := range []string{"0.0.0.0:1", "192.0.2.1:1", "localhost:1", "127.0.0.1", ":1", "[::]:1"} {
		config, _ := programs(t, stay, stay)
		config.Listen = address
		if err := up.Run(t.Context(), config, nil); !fault.Is(err, fault.MalformedRequest) {
			t.Errorf("%s: %v", address, err)
		}
		if _, err := os.Stat(config.DataDir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the data folder was made", address)
		}
	}
}
