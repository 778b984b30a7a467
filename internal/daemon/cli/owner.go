package cli

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/chaperone-agents/chaperone/client"
)

type sessionsCommand struct {
	List sessionsList `cmd:"" help:"List live agent sessions."`
	Add  sessionsAdd  `cmd:"" help:"Make an agent session for streamable HTTP and show its credential once."`
	End  sessionsEnd  `cmd:"" help:"End an agent session."`
}

type sessionsList struct {
	JSON bool `help:"Print JSON."`
}

func (c *sessionsList) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.ListSessionsWithResponse(e.ctx)
	if err := check(r, err); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(r.JSON200)
	}
	return e.table("SESSION\tPROFILE\tSTARTED", func(row func(...string)) {
		for _, s := range r.JSON200.Sessions {
			profile := text(s.ProfileId)
			if profile == "" {
				profile = "ephemeral"
			}
			row(s.Id, profile, when(&s.CreatedAt))
		}
	})
}

type sessionsAdd struct {
	Profile string `help:"Profile id." required:""`
	Name    string `help:"A name for the client, shown in the list of devices." default:"agent"`
	JSON    bool   `help:"Print JSON."`
}

func (c *sessionsAdd) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	created, err := conn.newSession(e.ctx, client.CreateSessionJSONRequestBody{ProfileId: &c.Profile, Name: &c.Name})
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(map[string]string{"session_id": created.SessionId, "credential": created.Credential, "url": conn.running.Console + "/mcp"})
	}
	fmt.Fprintf(e.stdout, "Give your MCP client this address and header. The credential is shown only now.\n\n  %s/mcp\n  Authorization: Bearer %s\n", conn.running.Console, created.Credential)
	return nil
}

type sessionsEnd struct {
	Session string `arg:"" help:"Session id."`
}

func (c *sessionsEnd) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.EndSessionWithResponse(e.ctx, c.Session)
	if err := check(r, err); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "Ended.")
	return nil
}

type devicesCommand struct {
	List   devicesList   `cmd:"" help:"List paired devices."`
	Revoke devicesRevoke `cmd:"" help:"Revoke a device; it is refused from its next request on."`
}

type devicesList struct {
	JSON bool `help:"Print JSON."`
}

func (c *devicesList) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.ListDevicesWithResponse(e.ctx)
	if err := check(r, err); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(r.JSON200)
	}
	return e.table("DEVICE\tNAME\tROLE\tLAST SEEN\tREVOKED", func(row func(...string)) {
		for _, d := range r.JSON200.Devices {
			row(d.Fingerprint, strconv.Quote(d.Name), string(d.Role), when(d.LastSeenAt), when(d.RevokedAt))
		}
	})
}

type devicesRevoke struct {
	Device string `arg:"" help:"Fingerprint of the device."`
}

func (c *devicesRevoke) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.RevokeDeviceWithResponse(e.ctx, c.Device)
	if err := check(r, err); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "Revoked.")
	return nil
}

type auditCommand struct {
	Tail auditTail `cmd:"" help:"Print the newest entries."`
}

type auditTail struct {
	Follow bool `help:"Go on printing as entries arrive." short:"f"`
	Limit  int  `help:"How many entries, 1 to 200." default:"50"`
	JSON   bool `help:"Print JSON lines."`
}

func (c *auditTail) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	params := &client.ListAuditParams{Limit: &c.Limit}
	show := func() error {
		r, err := conn.api.ListAuditWithResponse(e.ctx, params)
		if err := check(r, err); err != nil {
			return err
		}
		for _, a := range r.JSON200.Entries {
			params.After = &a.Number
			if err := e.entry(a, c.JSON); err != nil {
				return err
			}
		}
		return nil
	}
	if c.Follow {
		return conn.watch(e.ctx, show)
	}
	return show()
}

func (e *environment) entry(a client.AuditEntry, asJSON bool) error {
	if !asJSON {
		_, err := fmt.Fprintf(e.stdout, "%6d  %s  %-28s %s %s %s %s\n", a.Number, when(&a.At), a.Kind, text(a.Subject), text(a.Tool), text(a.Code), text(a.Detail))
		return err
	}
	line, err := json.Marshal(a)
	if err == nil {
		_, err = fmt.Fprintf(e.stdout, "%s\n", line)
	}
	return err
}

type consoleCommand struct{}

func (c *consoleCommand) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.CreateConsoleLoginWithResponse(e.ctx)
	if err := check(r, err); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "This address logs in once, within ten minutes:\n\n  %s\n", r.JSON201.LoginUrl)
	return nil
}

type stopCommand struct{}

func (c *stopCommand) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.StopWithResponse(e.ctx)
	if err := check(r, err); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "Every agent session has ended. Profiles and their sealed sessions are kept.")
	return nil
}

type doctorCommand struct {
	JSON bool `help:"Print JSON."`
}

// finding is one line of chaperone-browserd --probe.
type finding struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
	Mend  string `json:"mend"`
}

// Run asks the isolated service, which knows what a browser needs, and adds
// what only this program knows.
func (c *doctorCommand) Run(e *environment) error {
	service := filepath.Join(e.bin, "chaperone-browserd")
	out, runErr := exec.CommandContext(e.ctx, service, "--probe", "--worker", filepath.Join(e.bin, "chaperone-worker")).Output()
	var found []finding
	if err := json.Unmarshal(out, &found); err != nil {
		return fmt.Errorf("%s could not check this machine: %w", service, runErr)
	}
	found = append(found, e.folder())
	bad := 0
	for _, f := range found {
		if !f.OK {
			bad++
		}
	}
	if c.JSON {
		if err := e.printJSON(found); err != nil {
			return err
		}
	} else {
		for _, f := range found {
			mark := "ok  "
			if !f.OK {
				mark = "FAIL"
			}
			fmt.Fprintf(e.stdout, "%s  %-16s %s\n", mark, f.Name, f.Found)
			if !f.OK {
				fmt.Fprintf(e.stdout, "      %-16s %s\n", "", f.Mend)
			}
		}
	}
	if bad > 0 {
		return errNo{fmt.Sprintf("%d of %d checks failed.", bad, len(found))}
	}
	return nil
}
