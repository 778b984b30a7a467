package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
)

// system is one of the two that are compared: an MCP server on stdio and
// everything it starts.
type system struct {
	name               string
	navigate, snapshot string // names of its tools
	inNavigate         bool   // navigate's own answer holds the observation
	mayGiveUp          bool   // a call that ends in its own time limit is a result, not an error of ours
	// act is the tool for an act and its arguments, with the references of the
	// newest observation.
	act func(one act, shown string) (tool string, args map[string]any, err error)

	cmd     *exec.Cmd
	session *mcp.ClientSession
	read    *counter
	log     *tail
	family  func() (leak.Which, error) // its processes now
	end     func() error               // what stop does besides
}

// connect starts the MCP server and says hello.
func (s *system) connect(ctx context.Context, cmd *exec.Cmd) error {
	s.cmd, s.log = cmd, &tail{}
	cmd.Stderr = s.log
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.read = &counter{in: out}
	if err := cmd.Start(); err != nil {
		return err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "seebench", Version: "1"}, nil)
	s.session, err = client.Connect(ctx, &mcp.IOTransport{Reader: s.read, Writer: in}, nil)
	if err != nil {
		return errors.Join(fmt.Errorf("%s does not answer: %w: %s", s.name, err, s.log), s.stop())
	}
	return nil
}

// stop closes the server's input, which is how MCP clients end one.
func (s *system) stop() error {
	if s.session != nil {
		s.session.Close()
	}
	done := make(chan struct{})
	go func() { s.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(45 * time.Second):
		s.cmd.Process.Kill()
		<-done
	}
	if s.end != nil {
		return s.end()
	}
	return nil
}

// answer is one result of a tool.
type answer struct {
	text   string
	took   time.Duration
	gaveUp bool // it ran into its own time limit
}

// tokens is the usual estimate: a quarter of the characters.
func (a answer) tokens() int { return (utf8.RuneCountInString(a.text) + 3) / 4 }

func (s *system) call(ctx context.Context, tool string, args map[string]any) (answer, error) {
	began := time.Now()
	r, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	a := answer{took: time.Since(began)}
	if err != nil {
		return a, fmt.Errorf("%s: %s: %w: %s", s.name, tool, err, s.log)
	}
	for _, c := range r.Content {
		text, ok := c.(*mcp.TextContent)
		if !ok {
			return a, fmt.Errorf("%s: %s: a block that is no text", s.name, tool)
		}
		a.text += text.Text
	}
	a.gaveUp = r.IsError && s.mayGiveUp && strings.Contains(a.text, "TimeoutError")
	if r.IsError && !a.gaveUp {
		return a, fmt.Errorf("%s: %s: %.500s", s.name, tool, a.text)
	}
	return a, nil
}

func (s *system) open(ctx context.Context, p page) (answer, error) {
	return s.call(ctx, s.navigate, map[string]any{"url": p.url()})
}

func (s *system) look(ctx context.Context) (answer, error) {
	return s.call(ctx, s.snapshot, map[string]any{})
}

// toolBytes is the size of the whole answer to tools/list.
func (s *system) toolBytes(ctx context.Context) (int64, error) {
	before := s.read.n.Load()
	r, err := s.session.ListTools(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("%s: tools/list: %w", s.name, err)
	}
	if body, err := json.Marshal(r); err != nil || strings.TrimSpace(string(body)) == "" {
		return 0, fmt.Errorf("%s: tools/list: empty: %w", s.name, err)
	}
	return s.read.n.Load() - before, nil
}

// counter counts what is read.
type counter struct {
	in io.ReadCloser
	n  atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func (c *counter) Close() error { return c.in.Close() }

// tail keeps the end of what a program wrote, for an error.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-4096):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

// withUs makes a program end when this one does.
func withUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
