package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/daemon/up"
)

type upCommand struct {
	Listen         string        `help:"Loopback address of the console, the owner API and MCP." default:"127.0.0.1:8787"`
	CeremonyListen string        `help:"Loopback address of the sign-in page; the next port when empty."`
	Headless       bool          `help:"Run agents' browsers without a display. Sign-ins are always headed."`
	ApprovalWait   time.Duration `help:"How long a tool call waits for the owner before it answers approval_pending." default:"25s"`
	ToolNames      string        `help:"Spelling of MCP tool names." enum:"dotted,underscore" default:"dotted"`
	Isolation      string        `help:"What keeps browsers apart: namespaces, or weak where the system has none." enum:"namespaces,weak" default:"namespaces"`
	Dev            string        `help:"Development mode: a YAML file that maps host names to loopback." type:"existingfile"`
	JSON           bool          `help:"Print one JSON line when ready."`
}

func (c *upCommand) Run(e *environment) error {
	config, err := c.config(e)
	if err != nil {
		return err
	}
	return up.Run(e.ctx, config, func(r up.Running) {
		login := r.Console + "/#code=" + r.LoginCode
		if c.JSON {
			line, err := json.Marshal(map[string]string{"event": "ready", "console": r.Console + "/", "login_code": r.LoginCode, "login_url": login, "ceremony": r.Ceremony})
			if err == nil {
				fmt.Fprintf(e.stdout, "%s\n", line)
			}
			return
		}
		fmt.Fprintf(e.stdout, "Chaperone is ready.\n\n  Console     %s\n  Login code  %s   (once, within ten minutes)\n  Data        %s\n\nPress Ctrl-C to stop.\n", login, r.LoginCode, config.DataDir)
	})
}

func (c *upCommand) config(e *environment) (up.Config, error) {
	ceremony := c.CeremonyListen
	if ceremony == "" {
		host, port, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return up.Config{}, fault.Newf(fault.MalformedRequest, "--listen %q is not host:port, such as 127.0.0.1:8787.", c.Listen)
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return up.Config{}, fault.Newf(fault.MalformedRequest, "--listen %q has no port that is a number, such as 127.0.0.1:8787.", c.Listen)
		}
		if n != 0 {
			n++
		}
		ceremony = net.JoinHostPort(host, strconv.Itoa(n))
	}
	if err := announceDev(e, c.Dev); err != nil {
		return up.Config{}, err
	}
	return up.Config{
		DataDir: e.data, Listen: c.Listen, Ceremony: ceremony, Headless: c.Headless, Isolation: c.Isolation,
		ApprovalWait: c.ApprovalWait, ToolNames: c.ToolNames, Dev: c.Dev, Bin: e.bin, ChildLog: e.stderr, Log: e.log,
	}, nil
}

// announceDev prints that this is development mode, if it is.
func announceDev(e *environment, file string) error {
	if file == "" {
		return nil
	}
	dev, err := devmode.Load(file)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stderr, dev.Banner("chaperone"))
	return nil
}
