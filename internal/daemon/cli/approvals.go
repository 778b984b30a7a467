package cli

import (
	"fmt"
	"strconv"

	"github.com/chaperone-agents/chaperone/client"
)

type approvalsCommand struct {
	List    approvalsList    `cmd:"" help:"List approvals; the waiting ones unless --all."`
	Show    approvalsShow    `cmd:"" help:"Show one approval."`
	Approve approvalsApprove `cmd:"" help:"Approve one action, once."`
	Deny    approvalsDeny    `cmd:"" help:"Deny one action."`
	Watch   approvalsWatch   `cmd:"" help:"Print approvals as they arrive."`
}

type approvalsList struct {
	All  bool `help:"Also those that are decided."`
	JSON bool `help:"Print JSON."`
}

func (c *approvalsList) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	params := &client.ListApprovalsParams{}
	if !c.All {
		pending := client.ApprovalStatusPending
		params.Status = &pending
	}
	r, err := conn.api.ListApprovalsWithResponse(e.ctx, params)
	if err := check(r, err); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(r.JSON200)
	}
	return e.table("APPROVAL\tSTATE\tASKED\tACTION", func(row func(...string)) {
		for _, a := range r.JSON200.Approvals {
			row(a.Id, string(a.Status), when(&a.CreatedAt), a.Summary)
		}
	})
}

type approvalsShow struct {
	Approval string `arg:"" help:"Approval id."`
	Picture  string `help:"Write a picture of the element's surroundings to this new file, as JPEG." placeholder:"FILE"`
	JSON     bool   `help:"Print JSON."`
}

func (c *approvalsShow) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.GetApprovalWithResponse(e.ctx, c.Approval)
	if err := check(r, err); err != nil {
		return err
	}
	where := e.stdout
	if c.JSON {
		where, err = e.stderr, e.printJSON(r.JSON200)
	} else {
		e.describe(*r.JSON200)
	}
	if err != nil || c.Picture == "" {
		return err
	}
	return e.picture(conn, c.Approval, c.Picture, where)
}

// describe prints an approval: our words first, then what the website says,
// quoted so that it cannot pass for ours (VIEW-02).
func (e *environment) describe(a client.Approval) {
	fmt.Fprintf(e.stdout, "%s\n  id       %s\n  state    %s, until %s\n", a.Summary, a.Id, a.Status, when(&a.ExpiresAt))
	quote := func(label, value string) {
		if value != "" {
			fmt.Fprintf(e.stdout, "  %-8s the website says %s\n", label, strconv.Quote(value))
		}
	}
	own := func(label, value string) {
		if value != "" {
			fmt.Fprintf(e.stdout, "  %-8s %s\n", label, value)
		}
	}
	v := a.View
	if !v.Described {
		own("note", "the element can no longer be described")
	}
	own("page", text(v.PageOrigin)+text(v.PagePath))
	quote("title", text(v.PageTitle))
	quote("element", text(v.ElementName))
	quote("text", text(v.ElementText))
	quote("dialog", text(v.ElementContext))
	if t := text(v.Text); t != "" {
		own("types", strconv.Quote(t))
	}
	if t := text(v.Option); t != "" {
		own("chooses", strconv.Quote(t))
	}
	own("key", text(v.Key))
	if v.Consequence != nil {
		own("means", consequences[*v.Consequence])
	}
	if i := v.Image; i != nil {
		own("image", fmt.Sprintf("%s, %d x %d, %d bytes, id %s", i.Type, i.Width, i.Height, i.Size, i.Id))
		own("digest", "SHA-256 of the image "+i.Sha256)
	}
	if v.Redacted != nil && *v.Redacted {
		own("note", "what looks like a secret is not shown")
	}
	if d := text(v.Digest); d != "" {
		own("digest", "SHA-256 of the text "+d)
	}
}

// consequences are what the owner is told of each; of what is not known,
// nothing.
var consequences = map[client.ActViewConsequence]string{
	client.Payment: "it may pay money", client.Purchase: "it may buy or order something", client.AuthenticationChange: "it may change how you sign in",
	client.AccountRecovery: "it may reset the access to your account", client.SecurityChange: "it may change your account or its security",
	client.PermissionChange: "it may change who may do what", client.LegalAcceptance: "it may accept terms in your name",
	client.Publication: "it may send or publish something", client.Destructive: "it may delete or cancel something", client.FileTransfer: "it may transfer a file",
	client.Routine: "nothing, by its words",
}

type approvalsApprove struct {
	Approval string `arg:"" help:"Approval id."`
}

func (c *approvalsApprove) Run(e *environment) error {
	return e.resolve(c.Approval, client.ResolveApprovalJSONRequestBody{Decision: client.ApproveOnce}, "Approved, for this one action.")
}

type approvalsDeny struct {
	Approval string `arg:"" help:"Approval id."`
	Reason   string `help:"A reason, kept in the audit trail; at most 500 characters."`
}

func (c *approvalsDeny) Run(e *environment) error {
	body := client.ResolveApprovalJSONRequestBody{Decision: client.Deny}
	if c.Reason != "" {
		body.Reason = &c.Reason
	}
	return e.resolve(c.Approval, body, "Denied. Nothing was sent.")
}

func (e *environment) resolve(id string, body client.ResolveApprovalJSONRequestBody, done string) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.ResolveApprovalWithResponse(e.ctx, id, body)
	if err := check(r, err); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, done)
	return nil
}

type approvalsWatch struct {
	JSON bool `help:"Print JSON lines."`
}

func (c *approvalsWatch) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	pending := client.ApprovalStatusPending
	show := func() error {
		r, err := conn.api.ListApprovalsWithResponse(e.ctx, &client.ListApprovalsParams{Status: &pending})
		if err := check(r, err); err != nil {
			return err
		}
		for _, a := range r.JSON200.Approvals {
			if seen[a.Id] {
				continue
			}
			seen[a.Id] = true
			if c.JSON {
				if err := e.printJSON(a); err != nil {
					return err
				}
				continue
			}
			e.describe(a)
			fmt.Fprintf(e.stdout, "  answer   chaperone approvals approve %s   or   deny %s\n\n", a.Id, a.Id)
		}
		return nil
	}
	if !c.JSON {
		fmt.Fprintln(e.stderr, "Waiting for approvals; press Ctrl-C to stop.")
	}
	return conn.watch(e.ctx, show)
}
