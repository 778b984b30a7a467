package egress

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// tunnel copies both ways until both sides have finished, one fails, or
// nothing has moved for too long. in reads what the browser sends, starting
// with what was buffered behind the request head.
func tunnel(browser net.Conn, in io.Reader, remote net.Conn) {
	var half atomic.Bool
	touch := func() {
		d := idleTime
		if half.Load() {
			d = halfTime
		}
		at := time.Now().Add(d)
		browser.SetDeadline(at)
		remote.SetDeadline(at)
	}
	copyTo := func(to net.Conn, from io.Reader) {
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			if n > 0 {
				touch()
				if _, werr := to.Write(buf[:n]); werr != nil {
					err = werr
				}
			}
			if err == io.EOF && closeWrite(to) {
				half.Store(true)
				touch()
				return
			}
			if err != nil {
				browser.Close()
				remote.Close()
				return
			}
		}
	}
	touch()
	var both sync.WaitGroup
	both.Go(func() { copyTo(remote, in) })
	both.Go(func() { copyTo(browser, remote) })
	both.Wait()
}

// closeWrite ends one direction; false if the connection cannot.
func closeWrite(c net.Conn) bool {
	w, ok := c.(interface{ CloseWrite() error })
	return ok && w.CloseWrite() == nil
}
