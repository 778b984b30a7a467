package driver_test

import (
	"bytes"
	"context"
	"fmt"
	"image/jpeg"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
)

// processes lists the live processes of this user whose command line has the text.
func processes(t testing.TB, text string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && strings.Contains(string(cmdline), text) {
			out = append(out, pid)
		}
	}
	return out
}

// browserPid is the browser process: the one that is no child type.
func browserPid(t testing.TB, home string) int {
	t.Helper()
	for _, pid := range processes(t, home) {
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(cmdline), "--remote-debugging-pipe") && !strings.Contains(string(cmdline), "--type=") {
			return pid
		}
	}
	t.Fatal("no browser process")
	return 0
}

func TestLife(t *testing.T) {
	t.Run("HEAD-01 HEAD-02 EPH-01 headed, scrubbed, and nothing stays", func(t *testing.T) {
		var c driver.Config
		b := newBench(t, func(made *driver.Config) { made.Headed = true; c = *made })
		d := b.open(t, "/agent", `<p id=o></p><script>o.textContent=navigator.userAgent+' webdriver='+navigator.webdriver</script>`)
		if strings.Contains(d.Text, "Headless") || !strings.Contains(d.Text, "webdriver=true") {
			t.Errorf("agent: %s", d.Text)
		}
		pid := browserPid(t, c.Home)
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"--no-sandbox", "--remote-debugging-port", "--user-agent", "--headless"} {
			if strings.Contains(string(cmdline), bad) {
				t.Errorf("started with %s", bad)
			}
		}
		if err := b.page.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "processes gone", func() bool { return len(processes(t, c.Home)) == 0 })
		if left, err := os.ReadDir(c.Home); err != nil || len(left) != 0 {
			t.Errorf("left in home: %v %v", left, err)
		}
		_, err = b.page.Observe(t.Context(), observe.Query{})
		refused(t, err, fault.ProviderUnavailable)
	})
	t.Run("REL-02 a browser killed in an act is an unknown outcome", func(t *testing.T) {
		var c driver.Config
		b := newBench(t, func(made *driver.Config) { c = *made })
		arrived := make(chan struct{}, 1)
		b.Handle(host+"/save", func(_ http.ResponseWriter, r *http.Request) {
			arrived <- struct{}{}
			<-r.Context().Done()
		})
		d := b.open(t, "/form", `<form action=/save method=post><button>Save</button></form>`)
		result := make(chan error, 1)
		go func() {
			_, err := b.page.Act(context.Background(), action.Action{Kind: action.Click, ExpectedRevision: d.Revision, Ref: d.Elements[0].Ref}, nil)
			result <- err
		}()
		<-arrived
		if err := syscall.Kill(browserPid(t, c.Home), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		refused(t, <-result, fault.OutcomeUnknown)
		<-b.page.Done()
		if n := b.Count(host, "/save"); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
	t.Run("a crashed page ends the browser", func(t *testing.T) {
		var c driver.Config
		b := newBench(t, func(made *driver.Config) { c = *made })
		b.open(t, "/crash", "x")
		for _, pid := range processes(t, c.Home) {
			cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if strings.Contains(string(cmdline), "--type=renderer") {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
			}
		}
		<-b.page.Done()
		_, err := b.page.Navigate(t.Context(), parse(t, "https://"+host+"/crash"))
		refused(t, err, fault.ProviderUnavailable)
	})
	t.Run("HEAD-01 no display, no browser", func(t *testing.T) {
		s := chromiumtest.NewSite(t, host)
		c := config(t, s, "https://"+host)
		c.Headed, c.Xvfb = true, "/bin/false"
		_, err := driver.Launch(t.Context(), c)
		refused(t, err, fault.ProviderUnavailable)
		c.Headed, c.Chromium = false, "/bin/false"
		_, err = driver.Launch(t.Context(), c)
		refused(t, err, fault.ProviderUnavailable)
		if left, err := os.ReadDir(c.Home); err != nil || len(left) != 0 {
			t.Errorf("left in home: %v %v", left, err)
		}
	})
}

// CAP-03, PROF: a session survives into another browser, HttpOnly, host-only,
// partitioned and stored parts included, without a request.
func TestSession(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Handle(host+"/in", func(w http.ResponseWriter, _ *http.Request) {
		for _, c := range []string{
			"host=1; Secure; HttpOnly; SameSite=Lax; Path=/", "__Host-x=2; Secure; Path=/; Max-Age=90000", "wide=3; Domain=wiki.example; Secure; SameSite=None",
			"chip=4; Secure; Path=/; SameSite=None; Partitioned", "deep=5; Path=/a/b; Secure",
		} {
			w.Header().Add("Set-Cookie", c)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<title>In</title><script>localStorage.token='tö\u0000ken';localStorage.empty=''</script>`))
	})
	b.Page("login.example/", `<script>localStorage.sso='yes'</script>`)
	for _, u := range []string{"https://login.example/", "https://wiki.example/in"} {
		if _, err := b.page.Navigate(t.Context(), parse(t, u)); err != nil {
			t.Fatal(err)
		}
	}
	first, err := b.page.Capture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d, err := b.page.Observe(t.Context(), observe.Query{}); err != nil || d.Title != "In" {
		t.Errorf("capture touched the open page: %q %v", d.Title, err)
	}
	if len(first.Cookies) != 5 || len(first.Origins) != 2 {
		t.Fatalf("captured %s", first)
	}
	s := chromiumtest.NewSite(t, host, "login.example")
	s.Page(host+"/", `<p id=o></p><script>o.textContent=JSON.stringify(localStorage)</script>`)
	p := launch(t, config(t, s, "https://"+host, "https://login.example"))
	if err := p.Restore(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Connects()); n != 0 {
		t.Errorf("restoring made %d connections: %v", n, s.Connects())
	}
	second, err := p.Capture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sorted := func(m browser.Material) []string {
		var out []string
		for _, c := range m.Cookies {
			part := ""
			if c.Partition != nil {
				part = fmt.Sprint(*c.Partition)
			}
			c.Partition = nil
			out = append(out, fmt.Sprintf("%+v %s", c, part))
		}
		for _, o := range m.Origins {
			out = append(out, fmt.Sprintf("%+v", o))
		}
		slices.Sort(out)
		return out
	}
	if a, b := sorted(first), sorted(second); !slices.Equal(a, b) {
		t.Errorf("round trip:\n%s\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
	d, err := p.Navigate(t.Context(), parse(t, "https://wiki.example/"))
	if err != nil || !strings.Contains(d.Text, "tö") {
		t.Fatal(d.Text, err)
	}
	sent := s.Requests(host)[0].Header.Get("Cookie")
	for _, want := range []string{"host=1", "__Host-x=2", "wide=3", "chip=4"} {
		if !strings.Contains(sent, want) {
			t.Errorf("the site got %q, without %s", sent, want)
		}
	}
	foreign := browser.Material{Origins: []browser.Storage{{Origin: "https://other.example", Items: []browser.Item{{Name: "a", Value: "b"}}}}}
	if err := p.Restore(t.Context(), foreign); err == nil {
		t.Error("storage of a foreign origin was restored")
	}
}

func TestCeremonyView(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	t.Run("READY-01 evidence", func(t *testing.T) {
		e, err := b.page.Evidence(t.Context())
		if err != nil || e.OnAllowedOrigin || e.ChallengeVisible || e.StoragePresent {
			t.Errorf("blank: %+v %v", e, err)
		}
		n := 0
		for body, want := range map[string]bool{
			`<input type=password>`: true, `<input autocomplete="one-time-code">`: true, `<input type=password style="display:none">`: false,
			`<p>Enter the <b>verification</b> code</p>`: true, `<iframe title="reCAPTCHA" srcdoc="x"></iframe>`: true, `<div class="h-captcha">x</div>`: true,
			`<p>Welcome back</p>`: false, `<p style="visibility:hidden">Use a passkey</p>`: false, `<script>document.cookie='a=b'</script><button>Use passkey</button>`: true,
		} {
			n++
			b.open(t, fmt.Sprint("/challenge", n), body)
			if e, err = b.page.Evidence(t.Context()); err != nil || e.ChallengeVisible != want || !e.OnAllowedOrigin {
				t.Errorf("%s: %+v %v", body, e, err)
			}
		}
		if e, err = b.page.Evidence(t.Context()); err != nil || !e.StoragePresent || e.Origin != "https://"+host {
			t.Errorf("%+v %v", e, err)
		}
	})
	t.Run("HEAD-04 frames and input", func(t *testing.T) {
		b.open(t, "/sign", say+`<body style="margin:0"><input style="position:absolute;left:100px;top:100px;width:200px;height:40px" onkeydown="keys+=event.key+event.isTrusted+' ';say(keys)"><script>let keys=''</script>`)
		ctx, cancel := context.WithCancel(t.Context())
		frames, err := b.page.Frames(ctx)
		if err != nil {
			t.Fatal(err)
		}
		f := <-frames
		if img, err := jpeg.Decode(bytes.NewReader(f.JPEG)); err != nil || f.Width < 640 || f.Height < 400 || img.Bounds().Dx() == 0 {
			t.Fatalf("%d x %d: %v", f.Width, f.Height, err)
		}
		for _, in := range []browser.Input{{Kind: "click", X: 150, Y: 120}, {Kind: "text", Text: "aé7"}, {Kind: "key", Key: "Backspace"}} {
			if err := b.page.Input(ctx, in); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "keys", func() bool { return strings.Contains(b.effects(), "atrue%20%C3%A9true%207true%20Backspacetrue%20") })
		eventually(t, "a new picture after typing", func() bool {
			again, ok := <-frames
			return ok && !bytes.Equal(again.JPEG, f.JPEG)
		})
		cancel()
		for range frames { // closed at the end of ctx
		}
		for _, in := range []browser.Input{{Kind: "paste"}, {Kind: "click", X: -1}, {Kind: "key", Key: "F5"}, {Kind: "text"}, {Kind: "click", Text: "x"}} {
			refused(t, b.page.Input(t.Context(), in), fault.MalformedRequest)
		}
	})
}
