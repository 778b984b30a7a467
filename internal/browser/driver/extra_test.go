package driver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/chromedp/cdproto/target"

	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
)

// POP-06: a popup that is not seen to be gone ends the browser, and one that
// goes does not.
func TestPopupThatStaysEndsTheBrowser(t *testing.T) {
	for _, c := range []struct {
		name, closes string // the browser's answer to Target.closeTarget
		gone, ends   bool   // then it says that the popup has gone; the browser must end
	}{
		{name: "closes", closes: `"result":{"success":true}`, gone: true},
		{name: "closed itself before", closes: `"error":{"code":-32602,"message":"No target with given id found"}`, gone: true},
		{name: "refuses", closes: `"error":{"code":-32000,"message":"no"}`, ends: true},
		{name: "says yes and stays", closes: `"result":{"success":true}`, ends: true},
		{name: "says nothing", ends: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				replies, toPage := io.Pipe()
				commands, fromPage := io.Pipe()
				p := &Page{
					conn: cdp.New(replies, fromPage), log: slog.New(slog.DiscardHandler), changed: make(chan struct{}), mainID: "main",
					popups: map[string]bool{}, asked: map[string]string{},
				}
				p.root = p.conn.Root()
				go p.root.Serve(p.onBrowserEvent)
				tell := func(text string) { _, _ = io.WriteString(toPage, text+"\x00") } // a reader that has gone is the end
				go func() {
					r := bufio.NewReader(commands)
					for {
						raw, err := r.ReadBytes(0)
						if err != nil {
							return
						}
						var m struct {
							ID     int64
							Method string
						}
						if json.Unmarshal(raw[:len(raw)-1], &m) != nil || m.Method != target.CommandCloseTarget || c.closes == "" {
							continue
						}
						if c.gone {
							tell(`{"method":"Target.detachedFromTarget","params":{"sessionId":"s","targetId":"popup"}}`)
						}
						tell(fmt.Sprintf(`{"id":%d,%s}`, m.ID, c.closes))
					}
				}()
				p.onExtra(p.conn.Session("s"), target.EventAttachedToTarget{SessionID: "s", TargetInfo: &target.Info{TargetID: "popup"}}, "popup")
				if ended := p.conn.Err() != nil; ended != c.ends {
					t.Errorf("the browser ended: %v", ended)
				}
				if len(p.notices) != 1 || p.notices[0].Kind != "popup" {
					t.Errorf("%+v", p.notices)
				}
				_ = p.conn.Close()
				_ = toPage.Close()
				_ = commands.Close()
			})
		})
	}
}
