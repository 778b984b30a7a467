package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"

	"github.com/chaperone-agents/chaperone/client"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/daemon/datadir"
	"github.com/chaperone-agents/chaperone/internal/daemon/up"
)

type mcpCommand struct {
	Profile      string        `help:"Profile id. The agent can use this profile and no other." xor:"what" required:""`
	Ephemeral    bool          `help:"A browser without a profile, forgotten at the end; needs --origin." xor:"what" required:""`
	Origin       []string      `help:"With --ephemeral: an origin the agent may open; repeat for more."`
	Image        []string      `help:"An image that the agent may upload, each time with your approval; repeat for more." type:"existingfile" placeholder:"FILE"`
	Headed       bool          `help:"With --ephemeral: run the browser under a private display."`
	ToolNames    string        `help:"Spelling of tool names; underscore for clients that forbid dots." enum:"dotted,underscore" default:"dotted"`
	ApprovalWait time.Duration `help:"When nothing is running yet: how long a call waits for the owner." default:"25s"`
	Dev          string        `help:"Development mode, always alone: a YAML file that maps host names to loopback." type:"existingfile"`
	Isolation    string        `help:"When nothing is running yet: what keeps browsers apart." enum:"namespaces,weak" default:"namespaces"`
}

// maxMessage is the largest MCP message in either direction, in bytes.
const maxMessage = 4 << 20

func (c *mcpCommand) Run(e *environment) error {
	if c.Ephemeral == (len(c.Origin) == 0) {
		return fault.New(fault.MalformedRequest, "--ephemeral and --origin belong together: name the origins that the agent may open.")
	}
	conn, stop, err := c.running(e)
	if err != nil {
		return err
	}
	defer stop()
	body := client.CreateSessionJSONRequestBody{}
	name := "mcp stdio"
	body.Name = &name
	if c.Ephemeral {
		body.AllowedOrigins, body.Headed = &c.Origin, &c.Headed
	} else {
		body.ProfileId = &c.Profile
	}
	session, err := conn.newSession(e.ctx, body)
	if err != nil {
		return err
	}
	defer func() { // the server ends it too when the stream closes
		ending, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), 40*time.Second)
		defer cancel()
		conn.api.EndSessionWithResponse(ending, session.SessionId)
	}()
	for _, file := range c.Image {
		i, err := conn.attach(e.ctx, session.SessionId, file)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stderr, "chaperone: the agent may ask to upload %s as image_id %s\n", file, i.Id)
	}
	err = bridge(e.ctx, conn.running.Console, c.ToolNames, session.Credential, e.stdin, e.stdout)
	if errors.Is(err, errEnded) {
		fmt.Fprintln(e.stderr, "chaperone:", err)
		err = nil
	}
	return err
}

// running is the Chaperone to use: the one of the data folder, or for an
// ephemeral browser with nothing running, or in development mode, one of our
// own that ends with us.
func (c *mcpCommand) running(e *environment) (*connection, func(), error) {
	if c.Dev == "" {
		conn, err := e.connect()
		if err == nil || !c.Ephemeral {
			return conn, func() {}, err
		}
	} else if !c.Ephemeral {
		conn, err := e.connect() // a profile lives in a data folder, which has its own mode
		return conn, func() {}, err
	}
	if err := announceDev(e, c.Dev); err != nil {
		return nil, nil, err
	}
	sweep(os.TempDir())
	folder, err := os.MkdirTemp("", privatePrefix)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.ctx))
	ended := make(chan error, 1)
	ready := make(chan up.Running, 1)
	go func() {
		ended <- up.Run(ctx, up.Config{
			DataDir: folder, Listen: "127.0.0.1:0", Ceremony: "127.0.0.1:0", Isolation: c.Isolation,
			ApprovalWait: c.ApprovalWait, ToolNames: c.ToolNames, Dev: c.Dev, Bin: e.bin, ChildLog: e.stderr, Log: e.log,
		}, func(r up.Running) { ready <- r })
	}()
	stop := func() {
		cancel()
		<-ended
		os.RemoveAll(folder)
	}
	select {
	case r := <-ready:
		// Not the login code: this stream is the agent's client's to read.
		fmt.Fprintf(e.stderr, "chaperone: decide what the agent may do at %s; to log in there, run: chaperone --data %s console\n", r.Console, folder)
		conn, err := e.open(datadir.Dir(folder), r)
		if err != nil {
			stop()
			return nil, nil, err
		}
		return conn, stop, nil
	case err := <-ended:
		cancel()
		os.RemoveAll(folder)
		return nil, nil, err
	case <-e.ctx.Done():
		stop()
		return nil, nil, e.ctx.Err()
	}
}

const (
	privatePrefix = "chaperone-"
	privateAge    = time.Minute // younger ones may be about to be locked
)

// sweep removes the private folders of earlier runs that were killed: those
// that nobody holds the lock of. Everybody can write where they are, so what is
// not exactly a folder of ours is not touched.
func sweep(temporary string) {
	left, err := filepath.Glob(filepath.Join(temporary, privatePrefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range left {
		if abandon, ok := claim(folder); ok {
			os.RemoveAll(folder)
			abandon()
		}
	}
}

// claim takes the lock of a folder that only this user can enter, if it has
// one that is old and free. Nobody else can then change what is in it.
func claim(folder string) (abandon func(), ok bool) {
	var info unix.Stat_t
	own := func(kind uint32) bool { return uint32(info.Mode)&unix.S_IFMT == kind && int(info.Uid) == os.Geteuid() }
	if unix.Lstat(folder, &info) != nil || !own(unix.S_IFDIR) || info.Mode&0o7777 != 0o700 {
		return nil, false
	}
	fd, err := unix.Open(filepath.Join(folder, "lock"), unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	lock := os.NewFile(uintptr(fd), "lock")
	made, err := lock.Stat()
	if err != nil || time.Since(made.ModTime()) < privateAge || unix.Fstat(fd, &info) != nil || !own(unix.S_IFREG) ||
		unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		lock.Close()
		return nil, false
	}
	return func() { lock.Close() }, true
}

func (c *connection) newSession(ctx context.Context, body client.CreateSessionJSONRequestBody) (*client.CreatedSession, error) {
	r, err := c.api.CreateSessionWithResponse(ctx, body)
	if err := check(r, err); err != nil {
		return nil, err
	}
	return r.JSON201, nil
}

// errEnded says that the owner ended the session, which is an orderly end.
var errEnded error = errNo{"The owner has ended this agent's session. Start the MCP client again for a new one."}

// bridge carries the bytes of an MCP stdio client to the server and back. It
// returns when either side ends.
func bridge(ctx context.Context, console, toolNames, credential string, in io.Reader, out io.Writer) error {
	ws, _, err := websocket.Dial(ctx, "ws"+console[len("http"):]+"/mcp/stdio?tool-names="+toolNames, &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + credential}},
	})
	if err != nil {
		return fmt.Errorf("the MCP endpoint does not answer: %w", err)
	}
	ws.SetReadLimit(maxMessage)
	conn := websocket.NetConn(ctx, ws, websocket.MessageBinary)
	done := make(chan error, 2)
	go func() { _, err := io.Copy(conn, in); done <- err }()
	go func() { _, err := io.Copy(out, conn); done <- err }()
	select {
	case err = <-done:
	case <-ctx.Done():
	}
	conn.Close()
	if websocket.CloseStatus(err) == websocket.StatusPolicyViolation {
		return errEnded
	}
	return err
}

// folder checks the data folder for doctor.
func (e *environment) folder() finding {
	f := finding{Name: "data folder", OK: true, Found: e.data}
	info, err := os.Stat(e.data)
	switch {
	case errors.Is(err, os.ErrNotExist):
		f.Found += " (made by the first `chaperone up`)"
		if info, err := os.Stat(filepath.Dir(e.data)); err == nil && !info.IsDir() {
			f.OK, f.Mend = false, "choose another folder with --data"
		}
	case err != nil:
		f.OK, f.Found, f.Mend = false, "cannot be read", "check who owns "+e.data
	case !info.IsDir() || info.Mode().Perm()&0o077 != 0:
		f.OK, f.Mend = false, "run: chmod 700 "+e.data
	}
	return f
}
