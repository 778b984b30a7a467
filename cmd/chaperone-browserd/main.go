// Command chaperone-browserd is the isolated browser service: it alone holds
// the keyring and the sealed profiles, and it alone starts browsers.
package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"

	"github.com/alecthomas/kong"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/base/version"
	"github.com/chaperone-agents/chaperone/internal/daemon/child"
	"github.com/chaperone-agents/chaperone/internal/daemon/isolated"
)

type flags struct {
	Version           kong.VersionFlag `help:"Print the version and exit."`
	Probe             bool             `help:"Check what browsers need on this machine, print JSON and exit."`
	Socket            string           `help:"Unix socket to serve the orchestrator on." type:"path"`
	ServiceCredential string           `help:"File with the credential the orchestrator must show." type:"path"`
	Keys              string           `help:"Folder of the keyring." type:"path"`
	Profiles          string           `help:"Folder of the sealed profiles." type:"path"`
	EgressLog         string           `help:"File for one line per egress decision." type:"path"`
	CeremonyListen    string           `help:"Loopback address of the sign-in surface." default:"127.0.0.1:8788"`
	Create            bool             `help:"Make keyring, profile folder and credential if there are none."`
	Worker            string           `help:"Path of chaperone-worker." required:"" type:"path"`
	Chromium          string           `help:"Path of the Chromium binary; the usual places when empty."`
	Xvfb              string           `help:"Path of Xvfb; the usual places when empty."`
	Isolation         string           `help:"What keeps browsers apart: namespaces, or weak where the system has none." enum:"namespaces,weak" default:"namespaces"`
	Capacity          int              `help:"Browsers at once." default:"3"`
	Dev               string           `help:"Development mode: a YAML file that maps host names to loopback." type:"existingfile"`
	Supervised        bool             `help:"End when standard input closes."`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Name("chaperone-browserd"), kong.Description("The isolated browser service of Chaperone; usually started by: chaperone up."),
		kong.Vars{"version": "chaperone-browserd " + version.String()})
	os.Exit(child.Program("chaperone-browserd", f.Supervised, f.Dev, func(ctx context.Context, dev *devmode.Config, log *slog.Logger) error {
		if f.Probe {
			return json.NewEncoder(os.Stdout).Encode(isolated.Probe(ctx, f.config(nil, log)))
		}
		return isolated.Run(ctx, f.config(dev, log), child.Announce)
	}))
}

func (f flags) config(dev *devmode.Config, log *slog.Logger) isolated.Config {
	return isolated.Config{
		Socket: f.Socket, ServiceCredential: f.ServiceCredential, Keys: f.Keys, Profiles: f.Profiles, EgressLog: f.EgressLog,
		CeremonyListen: f.CeremonyListen, Create: f.Create, Worker: f.Worker, Chromium: f.Chromium, Xvfb: f.Xvfb,
		Isolation: f.Isolation, Capacity: f.Capacity, Dev: dev, Log: log,
	}
}
