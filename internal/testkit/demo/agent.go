package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// agent is an MCP client of `chaperone mcp`, as a model's host would be.
type agent struct {
	session *mcp.ClientSession
	mu      sync.Mutex
	heard   strings.Builder // everything that it was ever told
}

// answer is a tool's result, or its refusal when Code is not empty.
type answer struct {
	URL      string    `json:"url"`
	Title    string    `json:"title"`
	Revision string    `json:"revision"`
	Text     string    `json:"text"`
	Elements []element `json:"elements"`
	Omitted  int       `json:"omitted_elements"`
	Code     string    `json:"code"`
	Message  string    `json:"message"`

	asked string // tool and arguments, for the picture
	raw   string
	took  time.Duration
}

type element struct {
	Ref  string `json:"ref"`
	Role string `json:"role"`
	Name string `json:"name"`
}

// find is the reference of the first control with a name that starts so.
func (a answer) find(name string) (string, error) {
	for _, e := range a.Elements {
		if strings.HasPrefix(e.Name, name) {
			return e.Ref, nil
		}
	}
	var names []string
	for _, e := range a.Elements {
		names = append(names, e.Role+" "+e.Name)
	}
	return "", fmt.Errorf("the agent sees no control %q on %s, only %q (and %d more)", name, a.URL, names, a.Omitted)
}

func startAgent(ctx context.Context, bin, data, profile string, log *tail) (*agent, error) {
	cmd := exec.Command(filepath.Join(bin, "chaperone"), "--data", data, "mcp", "--profile", profile)
	cmd.Stderr = log
	client := mcp.NewClient(&mcp.Implementation{Name: "chaperone-demo", Version: "1"}, nil)
	s, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: 30 * time.Second}, nil)
	if err != nil {
		return nil, fmt.Errorf("the agent cannot connect: %w", err)
	}
	return &agent{session: s}, nil
}

func (a *agent) close() error { return a.session.Close() }

// call calls a tool. A refusal is an answer, not an error.
func (a *agent) call(ctx context.Context, tool string, args map[string]any) (answer, error) {
	began := time.Now()
	r, err := a.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", tool, err)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return answer{}, err
	}
	a.mu.Lock()
	a.heard.Write(body)
	a.mu.Unlock()
	if len(r.Content) != 1 {
		return answer{}, fmt.Errorf("%s: %d blocks instead of one", tool, len(r.Content))
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		return answer{}, fmt.Errorf("%s: a block that is no text", tool)
	}
	v := answer{raw: text.Text, took: time.Since(began)}
	if err := json.Unmarshal([]byte(text.Text), &v); err != nil || r.IsError != (v.Code != "") {
		return answer{}, fmt.Errorf("%s: not the shape of a result: %.200s", tool, text.Text)
	}
	asked, err := json.Marshal(args)
	v.asked = tool + " " + string(asked)
	return v, err
}

// must is call for what has to succeed.
func (a *agent) must(ctx context.Context, tool string, args map[string]any) (answer, error) {
	v, err := a.call(ctx, tool, args)
	if err == nil && v.Code != "" {
		err = fmt.Errorf("%s: %s: %s", v.asked, v.Code, v.Message)
	}
	return v, err
}

func (a *agent) open(ctx context.Context, url string) (answer, error) {
	return a.must(ctx, "browser.navigate", map[string]any{"url": url})
}

// act asks for one action on the control with the name.
func (a *agent) act(ctx context.Context, on answer, kind, name string, more map[string]any) (answer, error) {
	ref, err := on.find(name)
	if err != nil {
		return answer{}, err
	}
	args := map[string]any{"kind": kind, "expected_revision": on.Revision, "ref": ref}
	for k, v := range more {
		args[k] = v
	}
	return a.call(ctx, "browser.act", args)
}

// transcript is everything that it was ever told.
func (a *agent) transcript() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heard.String()
}
