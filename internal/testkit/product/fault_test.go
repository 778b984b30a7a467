package product_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

// A second `up` on the same folder is refused in words, and disturbs nothing.
func TestSecondUpIsRefused(t *testing.T) {
	data := product.Folder(t)
	r := product.Up(t, data)
	second, err := product.TryUp(t, data)
	if err == nil || !strings.Contains(second.Log.String(), "another `chaperone up` is using this data folder") {
		t.Errorf("error %v, log %s", err, second.Log)
	}
	r.Must(nil, "profile", "list")
}

// Whichever program is killed, nothing of ours lives on, and store and seals
// are whole at the next start (GATE-08, LEASE-02).
func TestKilledPrograms(t *testing.T) {
	data := shared.copy(t)
	dev, id := shared.dev, shared.id
	for _, program := range []string{"chaperone", "chaperone-browserd", "chaperoned", "chaperone-worker", "chromium"} {
		t.Run(program, func(t *testing.T) {
			r := product.Up(t, data, "--dev", dev, "--approval-wait", "0s")
			agent := product.NewAgent(t, data, "--profile", id)
			if v := agent.Open(tickets); v.URL != tickets {
				t.Fatalf("not signed in: %+v", v)
			}
			sealed := read(t, seals(t, data)[0])
			whole := r.Family()
			victim, gone := r.PID(), whole
			if program != "chaperone" {
				victim = r.Child(program)
				var err error
				if gone, err = leak.Family(victim); err != nil || victim == 0 {
					t.Fatalf("no %s to kill: %v", program, err)
				}
			}
			if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			leak.NoProcess(t, 30*time.Second, gone)
			switch program {
			case "chaperone":
				<-r.Exited()
			case "chaperoned": // the agent's stream ended with it
				r.Stop()
			default:
				if after := agent.Call("browser.observe", struct{}{}); after.Code == "" {
					t.Errorf("a call after the death of %s: %+v", program, after)
				}
				if now := read(t, seals(t, data)[0]); now != sealed {
					t.Error("a dead browser was sealed")
				}
				agent.Close()
				r.Stop()
			}
			leak.NoProcess(t, 30*time.Second, whole)
		})
	}
	product.Up(t, data, "--dev", dev, "--approval-wait", "0s")
	agent := product.NewAgent(t, data, "--profile", id)
	if v := agent.Open(tickets); v.URL != tickets {
		t.Errorf("after all deaths: %+v", v)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Every door checks Host and Origin (the sign-in surface's own tests have more).
func TestForeignHostAndOrigin(t *testing.T) {
	r := product.Up(t, product.Folder(t))
	for _, base := range []string{r.Console, strings.TrimRight(r.Ceremony, "/") + "/authentication-surface.js"} {
		for name, change := range map[string]func(*http.Request){
			"host":   func(q *http.Request) { q.Host = "rebound.example" },
			"origin": func(q *http.Request) { q.Header.Set("Origin", "https://evil.example") },
			"null":   func(q *http.Request) { q.Header.Set("Origin", "null") },
		} {
			q, err := http.NewRequestWithContext(t.Context(), "GET", base, nil)
			if err != nil {
				t.Fatal(err)
			}
			change(q)
			answer, err := http.DefaultClient.Do(q)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusForbidden && answer.StatusCode != http.StatusMisdirectedRequest {
				t.Errorf("%s with a foreign %s: status %d", base, name, answer.StatusCode)
			}
		}
	}
}

// A store that is not whole stops the start, and says what is wrong.
func TestDamagedDataStopsTheStart(t *testing.T) {
	data := product.Folder(t)
	r := product.Up(t, data)
	profile(t, r)
	r.Stop()
	for name, c := range map[string]struct {
		damage func(t *testing.T) (mend func())
		says   string
	}{
		"corrupt envelope": {func(t *testing.T) func() {
			path := seals(t, data)[0]
			whole := read(t, path)
			put(t, path, strings.Replace(whole, `"origins"`, `"oriGins"`, 1)+" ")
			return func() { put(t, path, whole) }
		}, ".profile"},
		"missing key": {func(t *testing.T) func() {
			keys, err := filepath.Glob(filepath.Join(data, "keys", "*.key"))
			if err != nil || len(keys) != 1 {
				t.Fatal(keys, err)
			}
			whole := read(t, keys[0])
			if err := os.Remove(keys[0]); err != nil {
				t.Fatal(err)
			}
			return func() { put(t, keys[0], whole) }
		}, "key"},
		"readable key folder": {func(t *testing.T) func() {
			if err := os.Chmod(filepath.Join(data, "keys"), 0o755); err != nil {
				t.Fatal(err)
			}
			return func() { os.Chmod(filepath.Join(data, "keys"), 0o700) }
		}, "keys"},
		"foreign database": {func(t *testing.T) func() {
			path := filepath.Join(data, "chaperone.db")
			whole := read(t, path)
			put(t, path, strings.Repeat("not a database ", 100))
			return func() { put(t, path, whole) }
		}, "database"},
		"readable data folder": {func(t *testing.T) func() {
			if err := os.Chmod(data, 0o755); err != nil {
				t.Fatal(err)
			}
			return func() { os.Chmod(data, 0o700) }
		}, "chmod 700"},
	} {
		mend := c.damage(t)
		broken, err := product.TryUp(t, data)
		if err == nil || !strings.Contains(broken.Log.String(), c.says) {
			t.Errorf("%s: error %v, log %s", name, err, broken.Log)
		}
		mend()
	}
	product.Up(t, data).Must(nil, "profile", "list")
}

func put(t *testing.T, path, body string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
}

// While the owner signs in, no agent call reaches the profile; a cancelled
// sign-in leaves the earlier seal as it was; a used or wrong capability is
// refused (CER-02, CER-05, READY-04, SURF-01).
func TestSignInKeepsAgentsOut(t *testing.T) {
	_, r, id := signedIn(t)
	data := r.Data
	agent := product.NewAgent(t, data, "--profile", id)
	agent.Open(tickets)

	launch, _, done := r.Begin(id, practice.URL(practice.Desk, "/signin"))
	sealed := read(t, seals(t, data)[0])
	if v := agent.Call("browser.observe", struct{}{}); v.Code != "tool.browser.profile_unavailable" {
		t.Errorf("during the sign-in: %+v", v)
	}
	if h := product.Shake(t, launch[:len(launch)-4]+"AAAA", false); h != nil && !h.Until(time.Minute, func(state string, _ int, gone bool) bool { return gone && state != "live" }) {
		t.Error("a wrong capability opened the sign-in")
	}
	first := product.Shake(t, launch, true)
	if !first.Until(time.Minute, func(_ string, pictures int, _ bool) bool { return pictures > 0 }) {
		t.Fatal("no picture")
	}
	if h := product.Shake(t, launch, false); h != nil && !h.Until(time.Minute, func(state string, pictures int, gone bool) bool { return gone && pictures == 0 }) {
		t.Error("a capability worked twice")
	}
	first.Cancel()
	select {
	case got := <-done:
		if got.Status != 7 || !strings.Contains(got.Out, "cancelled") {
			t.Errorf("signin: status %d, %s", got.Status, got.Out)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the sign-in did not end")
	}
	if read(t, seals(t, data)[0]) != sealed {
		t.Error("a cancelled sign-in changed the seal")
	}
	if v := agent.Open(tickets); v.URL != tickets {
		t.Errorf("after the sign-in: %+v", v)
	}
}
