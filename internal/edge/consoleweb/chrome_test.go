package consoleweb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	proto "github.com/chromedp/cdproto/cdp"

	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
)

func TestMain(m *testing.M) { os.Exit(chromiumtest.Main(m)) }

// chrome is an owner's browser with one page.
type chrome struct {
	t    *testing.T
	page *cdp.Session
	root *cdp.Session
}

func newChrome(t *testing.T) *chrome {
	t.Helper()
	binary := chromiumtest.Chromium(t)
	toR, toW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromR, fromW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	home := chromiumtest.Home(t)
	cmd := exec.Command(binary, "--headless=new", "--remote-debugging-pipe", "--user-data-dir="+home, "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-gpu", "--hide-scrollbars", "about:blank")
	cmd.ExtraFiles = []*os.File{toR, fromW}
	cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "TZ=UTC", "LANG=en_GB.UTF-8"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	toR.Close()
	fromW.Close()
	conn := cdp.New(fromR, toW)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		// Closed in order, it leaves no process that writes to its home.
		cdp.Call(ctx, conn.Root(), proto.Command[proto.Empty, proto.Empty]{Method: "Browser.close"}, proto.Empty{})
		stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
		cmd.Wait()
		stop()
		conn.Close()
		fromR.Close()
	})
	c := &chrome{t: t, root: conn.Root()}
	var targets struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	c.call(c.root, "Target.getTargets", map[string]any{}, &targets)
	for _, target := range targets.TargetInfos {
		if target.Type == "page" {
			var attached struct{ SessionID string }
			c.call(c.root, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
			c.page = conn.Session(attached.SessionID)
		}
	}
	if c.page == nil {
		t.Fatal("the browser has no page")
	}
	return c
}

func (c *chrome) call(s *cdp.Session, method string, params map[string]any, out any) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 90*time.Second)
	defer cancel()
	raw, err := cdp.Call(ctx, s, proto.Command[map[string]any, json.RawMessage]{Method: method}, params)
	if err == nil && out != nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

// eval is the JSON value of an expression in the page.
func (c *chrome) eval(expression string, out any) {
	c.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	c.call(c.page, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &answer)
	if answer.ExceptionDetails != nil {
		c.t.Fatalf("%s: %s", expression, answer.ExceptionDetails.Exception.Description)
	}
	if out != nil {
		if err := json.Unmarshal(answer.Result.Value, out); err != nil {
			c.t.Fatalf("%s: %v", expression, err)
		}
	}
}

// until waits in the page until the expression holds.
func (c *chrome) until(expression string) {
	c.t.Helper()
	c.eval(fmt.Sprintf(`new Promise((yes, no) => {
		const end = Date.now() + 60000;
		(function look() {
			let holds = false;
			try { holds = Boolean(%s); } catch {}
			if (holds) yes(true);
			else if (Date.now() > end) no(new Error("never came true; the page shows: " + document.body.innerText));
			else setTimeout(look, 20);
		})();
	})`, expression), nil)
}

func (c *chrome) text() (s string) { c.t.Helper(); c.eval("document.body.innerText", &s); return s }

// open leaves for another document and waits until it runs.
func (c *chrome) open(url string) {
	c.t.Helper()
	c.call(c.page, "Page.navigate", map[string]any{"url": "about:blank"}, nil)
	c.call(c.page, "Page.navigate", map[string]any{"url": url}, nil)
	c.until(`document.readyState === "complete" && location.href !== "about:blank"`)
}

// click clicks the middle of what the expression finds, with real input.
func (c *chrome) click(element string) {
	c.t.Helper()
	c.press(element)()
}

// press is the first half of a click; the returned function is the other.
func (c *chrome) press(element string) (release func()) {
	c.t.Helper()
	c.until(fmt.Sprintf(`(%s) && !(%s).disabled`, element, element))
	var at struct{ X, Y float64 }
	c.eval(fmt.Sprintf(`(() => { const e = %s; e.scrollIntoView({block: "center"}); const b = e.getBoundingClientRect(); return {x: b.x + b.width / 2, y: b.y + b.height / 2}; })()`, element), &at)
	mouse := func(kind string) {
		c.t.Helper()
		c.call(c.page, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
	mouse("mousePressed")
	return func() { c.t.Helper(); mouse("mouseReleased") }
}

func (c *chrome) insert(text string) {
	c.t.Helper()
	c.call(c.page, "Input.insertText", map[string]any{"text": text}, nil)
}

func (c *chrome) key(name string, code int, modifiers int) {
	c.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
		if name == "Enter" && kind == "keyDown" {
			params["text"] = "\r"
		}
		c.call(c.page, "Input.dispatchKeyEvent", params, nil)
	}
}

func (c *chrome) size(width, height int) {
	c.t.Helper()
	c.call(c.page, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
}
