// Package cli is the owner's command line: a client of the owner API, the
// starter of everything (`up`), and the bridge that gives an agent its MCP
// server (`mcp`). It holds a paired device's credential and nothing else
// (design section 1).
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/chaperone-agents/chaperone/client"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/version"
	"github.com/chaperone-agents/chaperone/internal/daemon/child"
	"github.com/chaperone-agents/chaperone/internal/daemon/datadir"
	"github.com/chaperone-agents/chaperone/internal/daemon/up"
)

type commands struct {
	Data    string           `help:"Folder that holds everything of one owner." default:"${data}" type:"path" env:"CHAPERONE_DATA"`
	Version kong.VersionFlag `help:"Print the version and exit."`

	Up          upCommand          `cmd:"" help:"Start Chaperone for one owner and keep it running."`
	Profile     profileCommand     `cmd:"" help:"Create, list, show, revoke and delete profiles."`
	Signin      signinCommand      `cmd:"" help:"Sign in to a profile's website, unseen by any agent."`
	Approvals   approvalsCommand   `cmd:"" help:"Decide what agents may do."`
	Mcp         mcpCommand         `cmd:"" help:"Serve MCP over stdio for one agent, bound to one profile."`
	Sessions    sessionsCommand    `cmd:"" help:"List and end agent sessions; make one for streamable HTTP."`
	Image       imageCommand       `cmd:"" help:"Attach, list and remove the images that an agent may upload."`
	Devices     devicesCommand     `cmd:"" help:"List and revoke paired devices."`
	Audit       auditCommand       `cmd:"" help:"Read the audit trail."`
	Diagnostics diagnosticsCommand `cmd:"" help:"Show where the newest calls of agents spent their time."`
	Console     consoleCommand     `cmd:"" help:"Print an address that logs in to the console once."`
	Stop        stopCommand        `cmd:"" help:"Stop every agent now: end sessions, void approvals, close browsers."`
	Doctor      doctorCommand      `cmd:"" help:"Check this machine and say how to mend what is missing."`
}

// environment is what a command runs in.
type environment struct {
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	bin    string // folder of the programs
	data   string
	log    *slog.Logger
}

// Main runs the command line and returns the exit status: 0 done, 1 internal,
// 2 wrong usage, 3 no such record, 4 not allowed, 5 conflict with the present
// state, 6 not available now, 7 the answer or outcome was no.
func Main(args []string) int {
	ctx, cancel := child.Context(false)
	defer cancel()
	env := &environment{ctx: ctx, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	env.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	if exe, err := os.Executable(); err == nil {
		env.bin = filepath.Dir(exe)
	}
	var c commands
	parser, err := kong.New(&c,
		kong.Name("chaperone"),
		kong.Description("Let an agent work on websites you are signed in to, without your credentials and never behind your back."),
		kong.Vars{"version": "chaperone " + version.String(), "data": datadir.Default()},
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaperone:", err)
		return 1
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(env.stderr, "chaperone: %v\nFor help, run: chaperone %s\n", err, strings.TrimSpace(path(err)+" --help"))
		return statuses[fault.MalformedRequest]
	}
	env.data = c.Data
	if err := parsed.Run(env); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return 0
		}
		fmt.Fprintln(env.stderr, "chaperone:", message(err))
		return status(err)
	}
	return 0
}

// path is the command that a wrong command line got as far as, such as
// "profile create".
func path(err error) string {
	wrong, ok := errors.AsType[*kong.ParseError](err)
	if !ok || wrong.Context.Command() == "" {
		return ""
	}
	var words []string
	for _, word := range strings.Fields(wrong.Context.Command()) {
		if !strings.HasPrefix(word, "<") {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// errNo is an outcome that is no failure of the program.
type errNo struct{ text string }

func (e errNo) Error() string { return e.text }

func message(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e.Public
	}
	return err.Error()
}

// statuses is the third table from fault codes (design section 3): to exit
// status.
var statuses = map[fault.Code]int{
	fault.NotFound: 3, fault.Unauthenticated: 4, fault.Forbidden: 4,
	fault.Conflict: 5, fault.InvalidTransition: 5,
	fault.MalformedRequest: 2, fault.ArgumentsInvalid: 2, fault.URLDisallowed: 2,
	fault.PayloadTooLarge: 2, fault.UnsupportedMedia: 2,
	fault.ProviderUnavailable: 6, fault.ProfileUnavailable: 6, fault.SiteUnreachable: 6,
	fault.AuthenticationRequired: 7, fault.NeedsUser: 7, fault.ApprovalPending: 7, fault.ApprovalDenied: 7,
	fault.ApprovalExpired: 7, fault.NavigationCancelled: 7, fault.PageChanged: 7, fault.ElementNotFound: 7,
	fault.ActionNotAllowed: 7, fault.RegionNotActionable: 7, fault.FocusRequired: 7, fault.GrantNotApplicable: 7, fault.OutcomeUnknown: 7,
	fault.OutputInvalid: 1, fault.Internal: 1,
}

func status(err error) int {
	if _, no := errors.AsType[errNo](err); no {
		return 7
	}
	code := fault.CodeOf(err)
	if r, refused := errors.AsType[*client.Refusal](err); refused {
		code = fault.Code(r.Code)
	}
	if s, ok := statuses[code]; ok {
		return s
	}
	return 1
}

// callTime bounds one request; a sign-in browser may take most of it to start.
const callTime = 60 * time.Second

// connection is the owner API of a running Chaperone.
type connection struct {
	api     *client.ClientWithResponses
	stream  *client.ClientWithResponses // without a time-out, for events
	running up.Running
}

// connect finds the Chaperone that runs in the data folder.
func (e *environment) connect() (*connection, error) {
	dir, err := datadir.At(e.data)
	if err != nil {
		return nil, err
	}
	running, err := up.Find(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Newf(fault.ProviderUnavailable, "Chaperone is not running in %s. Start it with: chaperone up", dir)
	}
	if err != nil {
		return nil, err
	}
	return e.open(dir, running)
}

func (e *environment) open(dir datadir.Dir, running up.Running) (*connection, error) {
	credential, err := os.ReadFile(dir.OwnerCredential())
	if err != nil {
		return nil, fmt.Errorf("the owner's credential cannot be read: %w", err)
	}
	config := client.Config{BaseURL: running.Console, Credential: secret.NewText(strings.TrimSpace(string(credential)))}
	stream, err := client.New(config)
	if err != nil {
		return nil, err
	}
	config.HTTP = &http.Client{Timeout: callTime}
	api, err := client.New(config)
	if err != nil {
		return nil, err
	}
	return &connection{api: api, stream: stream, running: running}, nil
}

// answer is what every generated response type has.
type answer interface {
	StatusCode() int
	GetBody() []byte
}

// check is nil for a success, a *client.Refusal for any other answer, and
// fault.ProviderUnavailable for none.
func check(r answer, err error) error {
	if err != nil {
		return fault.Wrap(fault.ProviderUnavailable, "Chaperone does not answer. Is `chaperone up` still running?", err)
	}
	var body client.Error
	shown := &body
	if json.Unmarshal(r.GetBody(), shown) != nil {
		shown = nil
	}
	return client.Check(r.StatusCode(), shown)
}

// watch calls look at once and after every change, until ctx ends or it fails.
func (c *connection) watch(ctx context.Context, look func() error) error {
	one := 1
	newest, err := c.api.ListAuditWithResponse(ctx, &client.ListAuditParams{Limit: &one})
	if err := check(newest, err); err != nil {
		return err
	}
	after := int64(0)
	for _, e := range newest.JSON200.Entries {
		after = e.Number
	}
	if err := look(); err != nil {
		return err
	}
	if err := c.stream.Events(ctx, after, func(client.Event) error { return look() }); err != nil {
		return err
	}
	return ctx.Err()
}

// printJSON writes an answer as it came, indented.
func (e *environment) printJSON(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
