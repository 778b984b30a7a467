package product

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Agent is an MCP client of `chaperone mcp`.
type Agent struct {
	t       testing.TB
	Session *mcp.ClientSession
	Log     *Log
	Wire    *Log // every message, in both directions
}

// NewAgent starts `chaperone mcp` with the arguments.
func NewAgent(t testing.TB, data string, args ...string) *Agent {
	t.Helper()
	return Person{}.Agent(t, data, args...)
}

// Agent is NewAgent as the person.
func (p Person) Agent(t testing.TB, data string, args ...string) *Agent {
	t.Helper()
	a, err := p.TryAgent(t, data, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, a.Log)
	}
	return a
}

// TryAgent is Agent for one that may be refused.
func (p Person) TryAgent(t testing.TB, data string, args ...string) (*Agent, error) {
	t.Helper()
	a := &Agent{t: t, Log: &Log{}, Wire: &Log{}}
	cmd := p.command(t, data, append([]string{"mcp"}, args...))
	cmd.Stderr = a.Log
	return a, a.connect(&mcp.CommandTransport{Command: cmd, TerminateDuration: stopTime})
}

// OverHTTP is an MCP client of the streamable HTTP endpoint.
func OverHTTP(t testing.TB, url, credential string) *Agent {
	t.Helper()
	a := &Agent{t: t, Log: &Log{}, Wire: &Log{}}
	if err := a.connect(&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(credential)}}); err != nil {
		t.Fatal(err)
	}
	return a
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func (a *Agent) connect(transport mcp.Transport) (err error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "product-test", Version: "1"}, nil)
	ctx, cancel := context.WithTimeout(a.t.Context(), startTime)
	defer cancel()
	if a.Session, err = client.Connect(ctx, &mcp.LoggingTransport{Transport: transport, Writer: a.Wire}, nil); err == nil {
		a.t.Cleanup(a.Close)
	}
	return err
}

// Close ends the client as MCP clients do: it closes the program's input.
func (a *Agent) Close() { a.Session.Close() }

// Ends waits until the owner's side has ended the agent's stream, which its
// program has to say.
func (a *Agent) Ends() {
	a.t.Helper()
	ended := make(chan struct{})
	go func() { a.Session.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		a.t.Fatal("the agent's stream did not end")
	}
	if err := a.Session.Close(); err != nil {
		a.t.Errorf("the agent's program did not end in order: %v", err)
	}
	if !strings.Contains(a.Log.String(), "The owner has ended this agent's session") {
		a.t.Errorf("the agent's program said: %s", a.Log)
	}
}

// Answer is a tool result, or a refusal when Code is not empty.
type Answer struct {
	URL      string    `json:"url"`
	Title    string    `json:"title"`
	Revision string    `json:"revision"`
	Text     string    `json:"text"`
	Elements []Element `json:"elements"`

	Code      string   `json:"code"`
	Message   string   `json:"message"`
	Retryable bool     `json:"retryable"`
	Approval  *Waiting `json:"approval"`
}

// Element is a control in an answer.
type Element struct {
	Ref, Role, Name string
	Disabled        bool
}

// Waiting names an approval in an answer.
type Waiting struct{ ID, URL string }

// Call calls a tool.
func (a *Agent) Call(tool string, args any) Answer {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 90*time.Second)
	defer cancel()
	r, err := a.Session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		a.t.Fatalf("%s: %v\n%s", tool, err, a.Log)
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		a.t.Fatalf("%s: %v", tool, r.Content)
	}
	var answer Answer
	if err := json.Unmarshal([]byte(text.Text), &answer); err != nil {
		a.t.Fatalf("%s: %v in %s", tool, err, text.Text)
	}
	if r.IsError != (answer.Code != "") {
		a.t.Fatalf("%s: error %v with %s", tool, r.IsError, text.Text)
	}
	return answer
}

// Open navigates and must succeed.
func (a *Agent) Open(url string) Answer {
	a.t.Helper()
	v := a.Call("browser.navigate", map[string]string{"url": url})
	if v.Code != "" {
		a.t.Fatalf("open %s: %s %s\n%s", url, v.Code, v.Message, a.Log)
	}
	return v
}

// Act acts on the only control with the name.
func (a *Agent) Act(on Answer, kind, name string, more map[string]any) Answer {
	a.t.Helper()
	args := map[string]any{"kind": kind, "expected_revision": on.Revision}
	for _, e := range on.Elements {
		if e.Name == name {
			args["ref"] = e.Ref
		}
	}
	if args["ref"] == nil {
		a.t.Fatalf("no control %q among %v", name, on.Elements)
	}
	for k, v := range more {
		args[k] = v
	}
	return a.Call("browser.act", args)
}
