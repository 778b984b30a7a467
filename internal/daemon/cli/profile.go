package cli

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/chaperone-agents/chaperone/client"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
)

type profileCommand struct {
	Create profileCreate `cmd:"" help:"Create a profile for one website."`
	List   profileList   `cmd:"" help:"List profiles."`
	Show   profileShow   `cmd:"" help:"Show one profile."`
	Revoke profileRevoke `cmd:"" help:"Revoke a profile at once: close its browsers, void its approvals."`
	Delete profileDelete `cmd:"" help:"Delete a revoked profile and its sealed session."`
}

type profileCreate struct {
	Origin []string `help:"An origin the profile may be used on, such as https://wiki.example.org; repeat for more." required:""`
	JSON   bool     `help:"Print JSON."`
}

func (c *profileCreate) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.CreateProfileWithResponse(e.ctx, &client.CreateProfileParams{IdempotencyKey: ident.New()}, client.CreateProfileJSONRequestBody{AllowedOrigins: c.Origin})
	if err := check(r, err); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(r.JSON201)
	}
	fmt.Fprintf(e.stdout, "Created profile %s.\nNext: chaperone signin %s\n", r.JSON201.Id, r.JSON201.Id)
	return nil
}

type profileList struct {
	JSON bool `help:"Print JSON."`
}

func (c *profileList) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.ListProfilesWithResponse(e.ctx)
	if err := check(r, err); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(r.JSON200)
	}
	return e.table("PROFILE\tSTATE\tORIGINS\tLAST USED", func(row func(...string)) {
		for _, p := range r.JSON200.Profiles {
			row(p.Id, string(p.Status), strings.Join(p.AllowedOrigins, " "), when(p.LastUsedAt))
		}
	})
}

type profileShow struct {
	Profile string `arg:"" help:"Profile id."`
	JSON    bool   `help:"Print JSON."`
}

func (c *profileShow) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.GetProfileWithResponse(e.ctx, c.Profile)
	if err := check(r, err); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(r.JSON200)
	}
	p := r.JSON200
	fmt.Fprintf(e.stdout, "Profile   %s\nState     %s\nOrigins   %s\nCreated   %s\nLast used %s\n", p.Id, p.Status, strings.Join(p.AllowedOrigins, " "), when(&p.CreatedAt), when(p.LastUsedAt))
	return nil
}

type profileRevoke struct {
	Profile string `arg:"" help:"Profile id."`
}

func (c *profileRevoke) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.RevokeProfileWithResponse(e.ctx, c.Profile)
	if err := check(r, err); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "Revoked. No agent can use it any more.")
	return nil
}

type profileDelete struct {
	Profile string `arg:"" help:"Profile id."`
}

func (c *profileDelete) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.DeleteProfileWithResponse(e.ctx, c.Profile)
	if err := check(r, err); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "Deleted, with its sealed session.")
	return nil
}

type signinCommand struct {
	Profile string `arg:"" help:"Profile id."`
	URL     string `help:"Sign-in page; the first origin's home page when empty."`
	Open    bool   `help:"Open the address in this desktop's browser." default:"true" negatable:""`
	JSON    bool   `help:"Print JSON lines: the address, then the outcome."`
}

func (c *signinCommand) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	body := client.BeginCeremonyJSONRequestBody{}
	if c.URL != "" {
		body.LoginUrl = &c.URL
	}
	begun, err := conn.api.BeginCeremonyWithResponse(e.ctx, c.Profile, body)
	if err := check(begun, err); err != nil {
		return err
	}
	opened := false
	if c.Open {
		var done func()
		done, opened = openURL(e.data, begun.JSON201.LaunchUrl)
		defer done()
	}
	switch {
	case c.JSON:
		if err := e.printJSON(begun.JSON201); err != nil {
			return err
		}
	case opened:
		fmt.Fprintln(e.stdout, "Your browser shows the sign-in page. It is good for five minutes. If no page appears, use: chaperone signin --no-open")
	default:
		fmt.Fprintf(e.stdout, "Open this address to sign in. It works once, within five minutes:\n\n  %s\n\n", begun.JSON201.LaunchUrl)
	}
	status := begun.JSON201.Status
	for !terminal(status) {
		select {
		case <-e.ctx.Done():
			return e.ctx.Err()
		case <-time.After(time.Second):
		}
		r, err := conn.api.GetCeremonyWithResponse(e.ctx, begun.JSON201.Id)
		if err := check(r, err); err != nil {
			return err
		}
		if r.JSON200.Status != status && !c.JSON {
			fmt.Fprintln(e.stdout, "Sign-in:", strings.ReplaceAll(string(r.JSON200.Status), "_", " "))
		}
		status = r.JSON200.Status
	}
	if c.JSON {
		if err := e.printJSON(map[string]string{"id": begun.JSON201.Id, "status": string(status)}); err != nil {
			return err
		}
	}
	if status != client.CeremonyStatusReady {
		return errNo{"The sign-in ended as " + string(status) + ". Nothing was sealed; an earlier sign-in is kept."}
	}
	if !c.JSON {
		fmt.Fprintf(e.stdout, "Signed in and sealed. An agent can use it through: chaperone mcp --profile %s\n", c.Profile)
	}
	return nil
}

func terminal(s client.CeremonyStatus) bool {
	return s == client.CeremonyStatusReady || s == client.CeremonyStatusExpired || s == client.CeremonyStatusCancelled
}

// page leads a browser on to the one address in it.
const page = `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Chaperone</title>` +
	`<meta http-equiv="refresh" content="0;url=%[1]s"><a href="%[1]s">Sign in</a>`

// openURL asks the desktop to show the address; false when there is none. A
// sign-in's address is a capability, and every user of the machine can read
// command lines: the opener is told a file that only this user can read. done
// removes the file.
func openURL(data, address string) (done func(), ok bool) {
	done = func() {}
	opener, err := exec.LookPath("xdg-open")
	if err != nil || os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return done, false
	}
	folder, err := os.MkdirTemp(data, "signin-") // 0700
	if err != nil {
		return done, false
	}
	done = func() { os.RemoveAll(folder) }
	file := filepath.Join(folder, "signin.html")
	if err := os.WriteFile(file, fmt.Appendf(nil, page, html.EscapeString(address)), 0o600); err != nil {
		return done, false
	}
	return done, exec.Command(opener, file).Start() == nil
}

// table prints aligned columns.
func (e *environment) table(head string, rows func(row func(...string))) error {
	w := tabwriter.NewWriter(e.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, head)
	rows(func(cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) })
	return w.Flush()
}

func when(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
