package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/runtime"

	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
)

// sandboxPolicy is what every document gets beside the site's own policy
// (POP-03). It allows all that a sandbox can forbid except new windows,
// navigation of other windows, and plug-ins.
const sandboxPolicy = "sandbox allow-downloads allow-forms allow-modals allow-orientation-lock allow-pointer-lock allow-presentation " +
	"allow-same-origin allow-scripts allow-storage-access-by-user-activation allow-top-navigation"

// The browser itself adds the header, by rules without any script that it
// loads at its start. So bodies stream, connections are the browser's own, and
// nothing is sent twice. judgeResponse sees the headers after the rules: a
// document without ours is not shown.
//
// The second rule proves that the first is in force: it answers an address
// that only this browser knows.
const rules = `[
{"id": 1, "condition": {"resourceTypes": ["main_frame", "sub_frame", "object"]},
 "action": {"type": "modifyHeaders", "responseHeaders": [{"header": "content-security-policy", "operation": "append", "value": %q}]}},
{"id": 2, "condition": {"urlFilter": %q, "resourceTypes": ["image"]},
 "action": {"type": "redirect", "redirect": {"url": "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs="}}}
]`

const manifest = `{"manifest_version": 3, "name": "Chaperone document policy", "version": "1",
"permissions": ["declarativeNetRequest"], "host_permissions": ["<all_urls>"],
"declarative_net_request": {"rule_resources": [{"id": "documents", "enabled": true, "path": "rules.json"}]}}`

// rulesDir is where the browser finds its rules.
func (c Config) rulesDir() string { return filepath.Join(c.Home, "rules") }

// writeRules puts the rules where the browser loads them at its start.
func (c Config) writeRules(proof string) error {
	if err := os.Mkdir(c.rulesDir(), 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{"manifest.json": manifest, "rules.json": fmt.Sprintf(rules, sandboxPolicy, "|"+proof)} {
		if err := os.WriteFile(filepath.Join(c.rulesDir(), name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// proofBound is how long the rules may take to come into force.
const proofBound = 20 * time.Second

// prove waits until the rules are in force. Without them the browser would show
// no document at all; a launch that fails says so earlier.
func (p *Page) prove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, proofBound)
	defer cancel()
	address, err := json.Marshal(p.proof)
	if err != nil {
		return err
	}
	yes := true
	ask := runtime.EvaluateParams{
		Expression:   `new Promise((answer) => { const i = new Image(); i.onload = () => answer(true); i.onerror = () => answer(false); i.src = ` + string(address) + ` + Math.random(); })`,
		AwaitPromise: &yes, ReturnByValue: &yes,
	}
	for {
		r, err := cdp.Call(ctx, p.session, runtime.Evaluate, ask)
		if err != nil {
			return fmt.Errorf("driver: the document policy is not in force: %w", err)
		}
		if r.Result != nil && string(r.Result.Value) == "true" {
			break
		}
		select {
		case <-time.After(trialPause):
		case <-ctx.Done():
			return fmt.Errorf("driver: the document policy is not in force: %w", ctx.Err())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proof = ""
	return nil
}

// proves reports whether a request is that of prove. A page that knew the
// address would find nothing there afterwards.
func (p *Page) proves(v fetch.EventRequestPaused) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proof != "" && v.Request != nil && strings.HasPrefix(v.Request.URL, p.proof)
}

// sandboxed reports whether a document comes with our policy, in a form that
// the browser will apply: a signed exchange brings another document along,
// whose headers nobody has seen.
func sandboxed(headers []*fetch.HeaderEntry) bool {
	found := false
	for _, h := range headers {
		switch {
		case strings.EqualFold(h.Name, "Content-Security-Policy") && h.Value == sandboxPolicy:
			found = true
		case strings.EqualFold(h.Name, "Content-Type") && strings.HasPrefix(strings.ToLower(strings.TrimSpace(h.Value)), "application/signed-exchange"):
			return false
		}
	}
	return found
}
