// Command chaperoned is the orchestrator: policy, approvals, audit, the owner
// API, the console and MCP. It holds no key and no session of a website.
package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/base/version"
	"github.com/chaperone-agents/chaperone/internal/daemon/child"
	"github.com/chaperone-agents/chaperone/internal/daemon/orchestrator"
	"github.com/chaperone-agents/chaperone/internal/edge/mcpserver"
)

type flags struct {
	Version           kong.VersionFlag `help:"Print the version and exit."`
	Database          string           `help:"SQLite database file." required:"" type:"path"`
	Images            string           `help:"Folder for images that are attached to sessions; images, beside the database, when absent." type:"path"`
	Browserd          string           `help:"Socket of chaperone-browserd." required:"" type:"path"`
	ServiceCredential string           `help:"File with the credential for chaperone-browserd." required:"" type:"path"`
	OwnerCredential   string           `help:"File to keep the command line's credential in." required:"" type:"path"`
	Listen            string           `help:"Loopback address to listen on." default:"127.0.0.1:8787"`
	ApprovalWait      time.Duration    `help:"How long a tool call waits for the owner." default:"25s"`
	ToolNames         string           `help:"Spelling of MCP tool names." enum:"dotted,underscore" default:"dotted"`
	Headless          bool             `help:"Run the leases of profiles without a display."`
	Dev               string           `help:"Development mode: a YAML file that maps host names to loopback." type:"existingfile"`
	Supervised        bool             `help:"End when standard input closes."`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Name("chaperoned"), kong.Description("The orchestrator of Chaperone; usually started by: chaperone up."),
		kong.Vars{"version": "chaperoned " + version.String()})
	os.Exit(child.Program("chaperoned", f.Supervised, f.Dev, func(ctx context.Context, dev *devmode.Config, log *slog.Logger) error {
		if f.Images == "" {
			f.Images = filepath.Join(filepath.Dir(f.Database), "images")
		}
		return orchestrator.Run(ctx, orchestrator.Config{
			Database: f.Database, Images: f.Images, Browserd: f.Browserd, ServiceCredential: f.ServiceCredential, OwnerCredential: f.OwnerCredential,
			Listen: f.Listen, ApprovalWait: f.ApprovalWait, ToolNames: mcpserver.Names(f.ToolNames), Headless: f.Headless, Dev: dev, Log: log,
		}, child.Announce)
	}))
}
