package pipe

import (
	"context"
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// TRUST-03, CAPT-01: whatever a worker sends back for an observation, the
// service ends the call with a document or with one of our own sentences; what
// is accepted of the document keeps to every bound.
func FuzzObservation(f *testing.F) {
	for _, s := range []string{
		`{"url":"https://wiki.example.org/","title":"T","revision":"r","text":"text","elements":[{"ref":"r:0","role":"button","name":"Save","disabled":false,"checked":null}]}`,
		`{"url":"https://wiki.example.org/","revision":"r","elements":[{"ref":"r:0","role":"a","name":"\ud800"}],"states":{"r:0":{"options":[{"label":"A"}]}}}`,
		`{"elements":[{},{},{}]}`, `{"code":"tool.browser.page_changed","reason":2}`, `{"code":"no.such","reason":-1}`, `null`, `[`, ``,
	} {
		f.Add(byte(reply), byte(opObserve), uint32(len(s)), []byte(s))
		f.Add(byte(failure), byte(opObserve), uint32(len(s)), []byte(s))
	}
	f.Add(byte(reply), byte(opFrames), uint32(2), []byte("{}"))
	f.Add(byte(picture), byte(opFrames), uint32(2), []byte("{}"))
	f.Add(byte(reply), byte(opObserve), ^uint32(0), []byte("{}"))
	f.Add(byte(255), byte(255), uint32(0), []byte(nil))
	origins, err := site.ParseOrigins([]string{"https://wiki.example.org"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, k, o byte, length uint32, body []byte) {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		near, far := socket(t, fds[0]), socket(t, fds[1])
		c := NewClient(near)
		defer c.Close()
		go func() {
			asked, err := readHeader(far)
			if err == nil {
				_, err = readBody(far, asked)
			}
			if err == nil {
				head := []byte{byte(length >> 24), byte(length >> 16), byte(length >> 8), byte(length), k, o, 0, 0, 0, 0, 0, 0, 0, byte(asked.id)}
				_, _ = far.Write(append(head, body...)) // it may have hung up already
			}
			_ = far.Close()
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		d, err := c.Observe(ctx, observe.Query{})
		if ctx.Err() != nil {
			t.Fatal("the call did not end")
		}
		if err != nil {
			if e := fault.Public(err); e.Code == "" || e.Public == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		raw, err := observe.Accept(d, origins)
		if err != nil {
			if !fault.Is(err, fault.OutputInvalid) {
				t.Fatal(err)
			}
			return
		}
		kept, err := json.Marshal(raw.Document())
		if err != nil || len(kept) > documentMax {
			t.Fatalf("%d bytes, %v", len(kept), err)
		}
	})
}
