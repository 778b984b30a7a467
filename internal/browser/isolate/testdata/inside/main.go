// Command inside is a worker program for tests: it does what its pipe says and
// reports what a process in the namespaces can see and reach.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chaperone-agents/chaperone/internal/browser/isolate"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == isolate.VerbInit {
		os.Exit(isolate.Init(os.Args[2:]))
	}
	pipe, err := isolate.Pipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	r := bufio.NewReader(pipe)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return // the service has gone
		}
		verb, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
		out, _ := json.Marshal(run(verb, argument))
		pipe.Write(append(out, '\n'))
	}
}

func run(verb, argument string) string {
	switch verb {
	case "dial":
		network, address, _ := strings.Cut(argument, " ")
		c, err := net.DialTimeout(network, address, 5*time.Second)
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		if network == "udp" {
			if _, err := c.Write([]byte("x")); err != nil {
				return err.Error()
			}
		}
		c.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(5 * time.Second))
		answer, _ := io.ReadAll(io.LimitReader(c, 64))
		return "connected: " + string(answer)
	case "read":
		b, err := os.ReadFile(argument)
		if err != nil {
			return err.Error()
		}
		return string(b)
	case "write":
		if err := os.WriteFile(argument, []byte("x"), 0o600); err != nil {
			return err.Error()
		}
		return "written"
	case "list":
		entries, err := os.ReadDir(argument)
		if err != nil {
			return err.Error()
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, " ")
	case "environ":
		return strings.Join(os.Environ(), "\n")
	case "run":
		out, err := exec.Command("/bin/sh", "-c", argument).CombinedOutput()
		if err != nil {
			return string(out) + err.Error()
		}
		return string(out)
	case "setuid":
		if err := syscall.Setuid(0); err != nil {
			return err.Error()
		}
		return "root"
	case "search-key":
		if _, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", argument, 0); err != nil {
			return err.Error()
		}
		return "found"
	case "signal-init":
		syscall.Kill(1, syscall.SIGKILL)
		syscall.Kill(1, syscall.SIGSTOP)
		return "sent"
	case "stop": // a server that no longer does what it is told
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		return ""
	default:
		return "unknown verb"
	}
}
