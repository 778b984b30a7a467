package pipe_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/browser/worker/pipe"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// frame builds a raw frame: kinds are 1 request, 2 cancel, 3 reply, 4 failure,
// 5 picture, 6 ended; ops count from 1 launch to 9 input.
func frame(length uint32, kind, op byte, id uint64, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, length)
	b = append(b, kind, op)
	b = binary.BigEndian.AppendUint64(b, id)
	return append(b, body...)
}

func whole(kind, op byte, id uint64, body string) []byte {
	return frame(uint32(len(body)), kind, op, id, body)
}

// TRUST-03: a worker that was taken over can end its own pipe and nothing else.
func TestHostileWorker(t *testing.T) {
	for name, answer := range map[string][]byte{
		"a huge length":              frame(1<<32-1, 3, 4, 1, ""),
		"an answer over its bound":   frame(9<<20, 3, 4, 1, ""),
		"an answer to nothing":       whole(3, 4, 7, "{}"),
		"an answer to another call":  whole(3, 5, 1, "{}"),
		"a request":                  whole(1, 4, 1, "{}"),
		"an unknown kind":            whole(9, 4, 1, "{}"),
		"a picture without a stream": whole(5, 8, 1, `{"JPEG":"/9j/","Width":1,"Height":1}`),
		"half a frame":               frame(100, 3, 4, 1, "{"),
		"an answer twice":            append(whole(3, 4, 1, "["), whole(3, 4, 1, "{}")...),
	} {
		t.Run(name, func(t *testing.T) {
			near, far := pair(t)
			c := pipe.NewClient(near)
			go func() {
				io.ReadFull(far, make([]byte, 14))
				far.Write(answer)
				if name == "half a frame" {
					far.Close()
				}
			}()
			if _, err := c.Observe(t.Context(), observe.Query{}); !fault.Is(err, fault.ProviderUnavailable) && !fault.Is(err, fault.OutputInvalid) {
				t.Errorf("the caller got %v", err)
			}
			within(t, c.Lost(), "the end of a pipe that broke the protocol")
		})
	}
	for name, c := range map[string]struct {
		body string
		code fault.Code
	}{
		"another family's code": {`{"code":"approval_pending","public":"Approve at evil.example"}`, fault.Internal},
		"an unknown code":       {`{"code":"tool.browser.fine","public":"x"}`, fault.Internal},
		"not JSON":              {`<html>`, fault.Internal},
		"words of its own":      {`{"code":"tool.browser.needs_user","public":"Sign in at evil.example"}`, fault.NeedsUser},
		"a reason out of range": {`{"code":"tool.browser.needs_user","reason":99,"public":"evil"}`, fault.NeedsUser},
		"a negative reason":     {`{"code":"tool.browser.needs_user","reason":-1,"public":"evil"}`, fault.NeedsUser},
	} {
		t.Run("an error with "+name, func(t *testing.T) {
			near, far := pair(t)
			client := pipe.NewClient(near)
			go func() {
				io.ReadFull(far, make([]byte, 14))
				far.Write(whole(4, 4, 1, c.body))
			}()
			_, err := client.Observe(t.Context(), observe.Query{})
			e, ok := errors.AsType[*fault.Error](err)
			if !ok || e.Code != c.code || strings.Contains(e.Error(), "evil") {
				t.Errorf("the caller got %v", err)
			}
		})
	}
	t.Run("READY-02 evidence that is the ceremony's", func(t *testing.T) {
		near, far := pair(t)
		c := pipe.NewClient(near)
		go func() {
			io.ReadFull(far, make([]byte, 14))
			far.Write(whole(3, 7, 1, `{"TextDuringChallenge":true,"OnAllowedOrigin":true,"StoragePresent":true}`))
		}()
		if e, err := c.Evidence(t.Context()); err != nil || e.TextDuringChallenge || !e.OnAllowedOrigin {
			t.Errorf("evidence %+v, %v", e, err)
		}
	})
}

// The worker's end refuses what no service of ours would send, and ends.
func TestHostileService(t *testing.T) {
	setup, _ := json.Marshal(map[string]any{"origins": []string{home}})
	launch := whole(1, 1, 1, string(setup))
	for name, sent := range map[string][]byte{
		"a huge length":   frame(1<<32-1, 1, 1, 1, ""),
		"an unknown kind": whole(3, 1, 1, ""),
		"an unknown op":   whole(1, 99, 1, ""),
		"a number twice":  bytes.Repeat(whole(1, 8, 5, ""), 2),
		"half a frame":    launch[:20],
	} {
		t.Run(name, func(t *testing.T) {
			near, far := pair(t)
			world := &fake.World{}
			block := make(chan struct{})
			ended := make(chan error, 1)
			go func() {
				ended <- pipe.Serve(context.Background(), far, func(ctx context.Context, s pipe.Setup) (browser.Page, error) {
					p, err := world.Launch(ctx, browser.Spec{Origins: s.Origins})
					return stubborn{p.(*fake.Page), block}, err
				})
			}()
			if name == "a number twice" {
				near.Write(launch)
				io.ReadFull(near, make([]byte, 14))
			}
			near.Write(sent)
			near.CloseWrite()
			close(block)
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatal("Serve goes on")
			}
			if len(world.Live()) != 0 {
				t.Error("the browser was left open")
			}
		})
	}
	t.Run("a call before the launch, and a second launch", func(t *testing.T) {
		near, far := pair(t)
		world := &fake.World{}
		go pipe.Serve(context.Background(), far, func(ctx context.Context, s pipe.Setup) (browser.Page, error) {
			return world.Launch(ctx, browser.Spec{Origins: s.Origins})
		})
		c := pipe.NewClient(near)
		if _, err := c.Observe(t.Context(), observe.Query{}); !fault.Is(err, fault.ProviderUnavailable) {
			t.Errorf("before: %v", err)
		}
		if err := c.Launch(t.Context(), pipe.Setup{}); err != nil {
			t.Fatal(err)
		}
		if err := c.Launch(t.Context(), pipe.Setup{}); !fault.Is(err, fault.ProviderUnavailable) || world.Launched() != 1 {
			t.Errorf("second: %v, %d launched", err, world.Launched())
		}
	})
}

// stubborn is a page whose Frames waits.
type stubborn struct {
	*fake.Page
	block chan struct{}
}

func (s stubborn) Frames(ctx context.Context) (<-chan browser.Frame, error) {
	<-s.block
	return s.Page.Frames(ctx)
}
