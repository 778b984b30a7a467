package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// verifySandbox looks at the browser's processes from outside: at least one
// renderer, and every renderer behind a seccomp filter and in a process
// namespace of its own. Anything else is a reason not to use the browser.
func verifySandbox(browser int) error {
	all, err := readProcesses()
	if err != nil {
		return err
	}
	return judgeSandbox(all, browser)
}

func judgeSandbox(all map[int]processInfo, browser int) error {
	root, ok := all[browser]
	if !ok {
		return fmt.Errorf("driver: the browser process is not visible in /proc")
	}
	renderers := 0
	for pid, p := range all {
		if !p.renderer || !descends(all, pid, browser) {
			continue
		}
		renderers++
		if p.seccomp != "2" || p.depth <= root.depth {
			return fmt.Errorf("driver: a renderer runs without its sandbox (seccomp %q, %d process namespaces)", p.seccomp, p.depth)
		}
	}
	if renderers == 0 {
		return fmt.Errorf("driver: no renderer was found to check its sandbox")
	}
	return nil
}

type processInfo struct {
	parent   int
	seccomp  string
	depth    int // nested process namespaces as seen from here
	renderer bool
}

func readProcesses() (map[int]processInfo, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := map[int]processInfo{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		status, err := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
		if err != nil {
			continue // it ended meanwhile
		}
		cmdline, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue
		}
		p := processInfo{renderer: strings.Contains(string(cmdline), "--type=renderer")}
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(line, ":")
			switch name {
			case "PPid":
				p.parent, _ = strconv.Atoi(strings.TrimSpace(value))
			case "Seccomp":
				p.seccomp = strings.TrimSpace(value)
			case "NSpid":
				p.depth = len(strings.Fields(value))
			}
		}
		all[pid] = p
	}
	return all, nil
}

func descends(all map[int]processInfo, pid, from int) bool {
	for hops := 0; hops < 64 && pid > 0; hops++ {
		if pid == from {
			return true
		}
		pid = all[pid].parent
	}
	return false
}
