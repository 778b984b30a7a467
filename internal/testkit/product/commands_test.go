package product_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

// nobody is a well-formed id of nothing.
const nobody = "00000000-0000-4000-8000-000000000000"

func count(in, what string) int { return strings.Count(in, what) }

// Every program says what it is and what it takes.
func TestHelpAndVersion(t *testing.T) {
	for _, name := range []string{"chaperone", "chaperoned", "chaperone-browserd", "chaperone-worker"} {
		for _, flag := range []string{"--version", "--help"} {
			out, err := exec.CommandContext(t.Context(), filepath.Join(product.Bin(t), name), flag).Output()
			if err != nil || !bytes.Contains(out, []byte(name)) || flag == "--version" && bytes.Count(out, []byte("\n")) != 1 {
				t.Errorf("%s %s: %v, %s", name, flag, err, out)
			}
		}
	}
}

// Wrong usage is status 2 and names the command's help; with nothing running
// each command says how to start it. Neither leaves anything behind.
func TestUsage(t *testing.T) {
	data := product.Folder(t)
	for _, c := range []struct {
		line string
		says string
	}{
		{"", "run: chaperone --help"},
		{"frobnicate", "run: chaperone --help"},
		{"profile create", "run: chaperone profile create --help"},
		{"approvals show", "run: chaperone approvals show --help"},
		{"approvals approve a b", "run: chaperone approvals approve --help"},
		{"mcp", "--profile"},
		{"mcp --profile x --ephemeral", "run: chaperone mcp --help"},
		{"mcp --ephemeral", "--origin"},
		{"mcp --profile x --origin https://a.example", "--ephemeral"},
		{"up --listen 8787", "host:port"},
		{"up --listen 127.0.0.1:http", "number"},
		{"up --listen 0.0.0.0:8787", "loopback"},
		{"up --ceremony-listen 10.0.0.1:8788", "loopback"},
		{"up --isolation none", "namespaces"},
		{"up --dev " + data, "run: chaperone up --help"},
	} {
		if got := product.Run(t, data, strings.Fields(c.line)...); got.Status != 2 || !strings.Contains(got.Err, c.says) || got.Out != "" {
			t.Errorf("%q: status %d, %s%s", c.line, got.Status, got.Out, got.Err)
		}
	}
	for _, line := range []string{
		"profile list", "profile create --origin https://a.example", "signin x", "approvals list", "approvals watch",
		"mcp --profile x", "sessions list", "devices list", "audit tail -f", "console", "stop",
	} {
		if got := product.Run(t, data, strings.Fields(line)...); got.Status != 6 || !strings.Contains(got.Err, "chaperone up") {
			t.Errorf("%q: status %d, %s", line, got.Status, got.Err)
		}
	}
	if found, err := filepath.Glob(filepath.Join(data, "*")); err != nil || len(found) != 0 {
		t.Errorf("left behind: %v, %v", found, err)
	}
}

// follower is a command that goes on printing.
type follower struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  product.Log
	done chan struct{}
}

func follow(t *testing.T, data string, args ...string) *follower {
	t.Helper()
	f := &follower{t: t, cmd: exec.Command(filepath.Join(product.Bin(t), "chaperone"), append([]string{"--data", data}, args...)...), done: make(chan struct{})}
	f.cmd.Stdout, f.cmd.Stderr = &f.out, &f.out
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { f.cmd.Wait(); close(f.done) }()
	t.Cleanup(func() { f.cmd.Process.Kill(); <-f.done })
	return f
}

func (f *follower) prints(what string) {
	f.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(f.out.String(), what) {
		if time.Now().After(deadline) {
			f.t.Fatalf("%q was not printed in:\n%s", what, &f.out)
		}
		select {
		case <-f.done:
			f.t.Fatalf("ended: %s", &f.out)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// interrupt is Ctrl-C, which is a good end.
func (f *follower) interrupt() {
	f.t.Helper()
	f.cmd.Process.Signal(syscall.SIGINT)
	within(f.t, time.Minute, "the end", f.done)
	if s := f.cmd.ProcessState.ExitCode(); s != 0 {
		f.t.Errorf("status %d after Ctrl-C: %s", s, &f.out)
	}
}

// timings reads the diagnostics in both forms: the calls are there, and no
// word of the page or of the question is (OPD-01 to OPD-03).
func timings(t *testing.T, r *product.Running) {
	t.Helper()
	var read struct {
		Calls []struct {
			Tool, Outcome, Failure string
			Phases                 []struct{ Phase string }
		}
	}
	r.Must(&read, "diagnostics", "--json")
	if len(read.Calls) != 2 || read.Calls[0].Tool != "browser.navigate" || read.Calls[0].Outcome != "succeeded" || len(read.Calls[0].Phases) < 5 ||
		read.Calls[1].Tool != "browser.act" || read.Calls[1].Failure != "permission" {
		t.Errorf("diagnostics: %+v", read)
	}
	both := product.Run(t, r.Data, "diagnostics").Out + product.Run(t, r.Data, "diagnostics", "--json").Out
	if !strings.Contains(both, "dispatch") {
		t.Errorf("diagnostics: %s", both)
	}
	for _, word := range []string{shopHost, "https:", "Send order", "revision", "e1"} {
		if strings.Contains(both, word) {
			t.Errorf("diagnostics have %q: %s", word, both)
		}
	}
}

// The owner's side of a day, from the command line: what arrives is seen while
// it arrives, and whatever is ended ends for the agent at once (VIEW-02, PSM-11).
func TestOwnersCommands(t *testing.T) {
	shop, _, dev := newWorkshop(t)
	data := product.Folder(t)
	r := product.Up(t, data, "--dev", dev, "--approval-wait", "0s")
	id := profile(t, r)
	watch, plain, trail := follow(t, data, "approvals", "watch", "--json"), follow(t, data, "approvals", "watch"), follow(t, data, "audit", "tail", "-f", "--json")
	trail.prints("browser.profile.created")

	agent := product.NewAgent(t, data, "--ephemeral", "--origin", shopURL)
	page := agent.Open(shopURL + "/")
	asked := ask(t, agent, page)
	watch.prints(asked)
	plain.prints("chaperone approvals approve " + asked)
	trail.prints("approval.requested")
	if got := product.Run(t, data, "approvals", "show", asked); got.Status != 0 || !strings.Contains(got.Out, `the website says "Send order"`) {
		t.Errorf("show: status %d, %s", got.Status, got.Out)
	}
	if got := product.Run(t, data, "approvals", "list"); !strings.Contains(got.Out, asked) {
		t.Errorf("list: %s", got.Out)
	}
	r.Must(nil, "approvals", "deny", asked, "--reason", "not today")
	trail.prints(`"denied"`)
	if got := product.Run(t, data, "approvals", "list"); strings.Contains(got.Out, asked) {
		t.Errorf("a decided one is still waiting: %s", got.Out)
	}
	shop.has(t, 0, "after a denial")

	var all struct {
		Profiles  []struct{ ID string }
		Approvals []struct{ ID, Status string }
		Sessions  []struct{ ID string }
		Devices   []struct{ Fingerprint, Role string }
	}
	for _, line := range []string{"profile list --json", "approvals list --all --json", "sessions list --json", "devices list --json"} {
		r.Must(&all, strings.Fields(line)...)
	}
	if len(all.Profiles) != 1 || all.Profiles[0].ID != id || len(all.Approvals) != 1 || all.Approvals[0].Status != "denied" || len(all.Sessions) != 1 || len(all.Devices) != 2 {
		t.Errorf("listed: %+v", all)
	}
	var one struct{ ID, Reason string }
	r.Must(&one, "approvals", "show", asked, "--json")
	r.Must(&one, "profile", "show", id, "--json")
	if one.ID != id || one.Reason != "not today" {
		t.Errorf("shown: %+v", one)
	}
	for _, line := range []string{"profile list", "sessions list", "devices list", "audit tail", "profile show " + id} {
		r.Must(nil, strings.Fields(line)...)
	}
	timings(t, r)
	lines := product.Run(t, data, "audit", "tail", "--json", "--limit", "2").Out
	for line := range strings.Lines(lines) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	if count(lines, "\n") != 2 {
		t.Errorf("two entries: %s", lines)
	}
	for _, line := range []string{"profile show x", "profile revoke x", "signin x", "approvals show x", "approvals approve x", "mcp --profile " + nobody, "sessions end x", "sessions add --profile " + nobody, "devices revoke x"} {
		if got := product.Run(t, data, strings.Fields(line)...); got.Status != 3 || got.Err == "" {
			t.Errorf("%s: status %d, %s", line, got.Status, got.Err)
		}
	}
	if got := product.Run(t, data, "signin", id, "--url", "https://elsewhere.example/"); got.Status != 2 || !strings.Contains(got.Err, "not on one of the profile's websites") {
		t.Errorf("a sign-in elsewhere: status %d, %s", got.Status, got.Err)
	}
	if got := product.Run(t, data, "mcp", "--profile", id); got.Status != 5 || !strings.Contains(got.Err, "sign in first") {
		t.Errorf("an agent before the sign-in: status %d, %s", got.Status, got.Err)
	}

	idle := product.NewAgent(t, data, "--ephemeral", "--origin", shopURL)
	var before, after struct{ Sessions []struct{ ID string } }
	r.Must(&before, "sessions", "list", "--json")
	r.Must(nil, "sessions", "end", before.Sessions[0].ID) // the newest
	idle.Ends()
	idle = product.NewAgent(t, data, "--ephemeral", "--origin", shopURL)
	r.Must(&all, "devices", "list", "--json")
	r.Must(nil, "devices", "revoke", all.Devices[0].Fingerprint)
	idle.Ends()
	idle = product.NewAgent(t, data, "--ephemeral", "--origin", shopURL)
	r.Must(nil, "stop")
	idle.Ends()
	agent.Ends()
	r.Must(&after, "sessions", "list", "--json")
	if len(before.Sessions) != 2 || len(after.Sessions) != 0 || r.Child("chromium") != 0 {
		t.Errorf("sessions %v and after the stop %v; browser %d", before, after, r.Child("chromium"))
	}
	trail.prints("owner.stopped")
	watch.interrupt()
	plain.interrupt()
	trail.interrupt()

	_, code, ok := strings.Cut(product.Run(t, data, "console").Out, "#code=")
	login := func() int {
		answer, err := http.Post(r.Console+"v1/console-session", "application/json", strings.NewReader(`{"code":"`+strings.TrimSpace(code)+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	if first, second := login(), login(); !ok || first/100 != 2 || second != http.StatusUnauthorized {
		t.Errorf("the console's code: status %d, then %d", first, second)
	}
}

// The credential of `sessions add` opens the streamable HTTP endpoint for its
// profile, and nothing once the session has ended (BIND-01, TOOL-07).
func TestStreamableHTTP(t *testing.T) {
	shop, r, id := signedIn(t)
	var made struct {
		SessionID  string `json:"session_id"`
		Credential string `json:"credential"`
		URL        string `json:"url"`
	}
	r.Must(&made, "sessions", "add", "--profile", id, "--json")
	agent := product.OverHTTP(t, made.URL, made.Credential)
	if v := agent.Open(tickets); v.URL != tickets {
		t.Errorf("not signed in: %+v", v)
	}
	page := agent.Open(shopURL + "/")
	r.Must(nil, "approvals", "approve", ask(t, agent, page))
	if v := agent.Act(page, "click", "Send order", nil); v.Code != "" {
		t.Errorf("approved: %+v", v)
	}
	shop.has(t, 1, "after one approval")
	if s := knock(t, made.URL, made.Credential); s/100 == 4 && s != http.StatusBadRequest {
		t.Errorf("with the credential: status %d", s)
	}
	r.Must(nil, "sessions", "end", made.SessionID)
	if s := knock(t, made.URL, made.Credential); s != http.StatusUnauthorized {
		t.Errorf("after the end: status %d", s)
	}
	if s := knock(t, made.URL, ""); s != http.StatusUnauthorized {
		t.Errorf("without a credential: status %d", s)
	}
}

// knock asks for the list of tools and returns the status.
func knock(t *testing.T, url, credential string) int {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	if credential != "" {
		q.Header.Set("Authorization", "Bearer "+credential)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}
