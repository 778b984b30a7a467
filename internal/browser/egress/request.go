package egress

import (
	"bufio"
	"bytes"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// target is where a request wants to go, in the request's own spelling.
type target struct {
	connect bool
	host    string
	port    uint16
}

// readTarget reads one request head and nothing behind it. Header fields are
// counted and thrown away: none of them has a meaning here, so none can be
// abused. It returns false for what is not an HTTP/1 head within the bounds.
func readTarget(r *bufio.Reader) (target, bool) {
	line, err := r.ReadSlice('\n') // within the reader's buffer, 4 KiB
	if err != nil {
		return target{}, false
	}
	t, ok := parseLine(string(bytes.TrimRight(line, "\r\n")))
	if !ok {
		return t, false
	}
	for read, start := len(line), true; ; {
		line, err := r.ReadSlice('\n')
		if read += len(line); read > MaxHead {
			return t, false
		}
		switch {
		case err == bufio.ErrBufferFull:
			start = false
		case err != nil:
			return t, false
		case start && len(bytes.TrimRight(line, "\r\n")) == 0:
			return t, true
		default:
			start = true
		}
	}
}

// parseLine reads "METHOD TARGET HTTP/1.x".
func parseLine(line string) (target, bool) {
	method, rest, _ := strings.Cut(line, " ")
	where, version, _ := strings.Cut(rest, " ")
	if method == "" || where == "" || (version != "HTTP/1.1" && version != "HTTP/1.0") {
		return target{}, false
	}
	for i := range len(where) {
		if where[i] <= ' ' || where[i] >= 0x7f {
			return target{}, false
		}
	}
	if method != "CONNECT" {
		// Refused whatever it says; it is read only for the audit line.
		u, err := url.Parse(where)
		if err != nil {
			return target{}, true
		}
		port, _ := strconv.ParseUint(u.Port(), 10, 16)
		if port == 0 && u.Scheme == "http" {
			port = 80
		}
		return target{host: clip(u.Hostname()), port: uint16(port)}, true
	}
	at := strings.LastIndexByte(where, ':')
	if at < 0 {
		return target{connect: true, host: clip(where)}, true
	}
	port, err := strconv.ParseUint(where[at+1:], 10, 16)
	if err != nil || where[at+1:] != strconv.FormatUint(port, 10) {
		port = 0 // "+443", "0443": no second spelling of a port
	}
	if len(where[:at]) > 254 { // the longest name and its final dot
		port = 0
	}
	return target{connect: true, host: clip(where[:at]), port: uint16(port)}, true
}

// clip bounds a name for the audit line; a longer one is never a valid name.
func clip(host string) string { return host[:min(len(host), 254)] }

// refuse answers and lets the answer arrive: closing over unread bytes would
// reset the connection.
func refuse(conn net.Conn, r Reason) {
	body := string(r) + "\n"
	_, err := conn.Write([]byte("HTTP/1.1 " + r.status() + "\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body))
	if err != nil || !closeWrite(conn) {
		return
	}
	conn.SetReadDeadline(time.Now().Add(time.Second))
	var sink [4096]byte
	for range 64 {
		if _, err := conn.Read(sink[:]); err != nil {
			return
		}
	}
}
