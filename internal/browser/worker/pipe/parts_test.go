package pipe

import (
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// TRUST-03: an observation of 8 MiB that stands for gigabytes is refused, and
// costs the service little more than its own size.
func TestCrowdedObservation(t *testing.T) {
	for name, head := range map[string]string{"elements": `{"elements":[{}`, "regions": `{"regions":[{}`, "frames": `{"frames":[{}`, "notices": `{"notices":[{}`} {
		body := head + strings.Repeat(",{}", (documentMax-len(head)-2)/3) + "]}"
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		near, far := socket(t, fds[0]), socket(t, fds[1])
		c := NewClient(near)
		go func() {
			io.ReadFull(far, make([]byte, headerSize))
			(&writer{conn: far}).send(reply, opObserve, 1, []byte(body))
		}()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err = c.Observe(t.Context(), observe.Query{})
		runtime.ReadMemStats(&after)
		if !fault.Is(err, fault.OutputInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 4*documentMax {
			t.Errorf("%s: %d MiB were allocated", name, spent>>20)
		}
	}
	if n := parts([]byte(`{"a":[1,2,"x,[{\\",{}],"b":"\\\"{[,"}`)); n != 7 {
		t.Errorf("%d parts", n)
	}
}

func socket(t *testing.T, fd int) *net.UnixConn {
	t.Helper()
	f := os.NewFile(uintptr(fd), "pipe")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.UnixConn)
}
