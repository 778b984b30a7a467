package isolate

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// verify looks at the first process from outside and believes nothing that it
// says: own namespaces, the right user, no groups of root's, no capability, no
// way to gain one, and no network interface but loopback.
func (w *Worker) verify() error {
	proc := "/proc/" + strconv.Itoa(w.PID())
	for _, ns := range []string{"user", "pid", "net", "mnt", "ipc", "uts"} {
		ours, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			return fmt.Errorf("isolate: verify: %w", err)
		}
		theirs, err := os.Readlink(proc + "/ns/" + ns)
		if err != nil {
			return fmt.Errorf("isolate: verify: %w", err)
		}
		if ours == theirs {
			return fmt.Errorf("isolate: verify: the worker shares the %s namespace of the service", ns)
		}
	}
	tasks, err := os.ReadDir(proc + "/task")
	if err != nil {
		return fmt.Errorf("isolate: verify: %w", err)
	}
	for _, t := range tasks {
		s, err := status(proc + "/task/" + t.Name())
		if err != nil {
			return fmt.Errorf("isolate: verify: %w", err)
		}
		if err := w.unprivileged(s); err != nil {
			return err
		}
	}
	return onlyLoopback(proc + "/net/dev")
}

func (w *Worker) unprivileged(s map[string]string) error {
	id := strconv.Itoa(w.uid)
	if s["Uid"] != strings.Join([]string{id, id, id, id}, "\t") || w.uid == 0 {
		return fmt.Errorf("isolate: verify: the worker has the user ids %q", s["Uid"])
	}
	if os.Getuid() == 0 && s["Groups"] != "" {
		return fmt.Errorf("isolate: verify: the worker has the groups %q", s["Groups"])
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		if strings.Trim(s[set], "0") != "" || s[set] == "" {
			return fmt.Errorf("isolate: verify: the worker has capabilities: %s %s", set, s[set])
		}
	}
	if s["NoNewPrivs"] != "1" {
		return errors.New("isolate: verify: the worker could gain privileges")
	}
	return nil
}

func onlyLoopback(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("isolate: verify: %w", err)
	}
	found := 0
	for line := range strings.Lines(string(b)) {
		name, _, ok := strings.Cut(line, ":")
		if !ok {
			continue // the two lines of headings
		}
		if found++; strings.TrimSpace(name) != "lo" {
			return fmt.Errorf("isolate: verify: the worker has the network interface %q", strings.TrimSpace(name))
		}
	}
	if found != 1 {
		return errors.New("isolate: verify: the worker has no loopback")
	}
	return nil
}

// VerifyBrowser looks, from outside, at every process that descends from the
// worker, once a page exists: all run as its user and share no network with
// the service, and every renderer is in Chromium's own sandbox: a system-call
// filter and namespaces of its own below the worker's.
func (w *Worker) VerifyBrowser() error {
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return fmt.Errorf("isolate: verify: %w", err)
	}
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", w.PID()))
	if err != nil {
		return fmt.Errorf("isolate: verify: %w", err)
	}
	pids, err := descendants(w.PID())
	if err != nil {
		return err
	}
	self, err := status("/proc/self")
	if err != nil {
		return fmt.Errorf("isolate: verify: %w", err)
	}
	// Our own pid namespaces, the worker's, and the sandbox's.
	levels := len(strings.Fields(self["NSpid"])) + 2
	if w.weak {
		levels--
	}
	renderers := 0
	for _, pid := range pids {
		proc := "/proc/" + strconv.Itoa(pid)
		s, err := status(proc)
		if err != nil || s["State"] == "" || s["State"][0] == 'Z' {
			continue // ended meanwhile
		}
		if err := w.sameUser(s); err != nil {
			return err
		}
		net, err := os.Readlink(proc + "/ns/net")
		if err != nil {
			continue
		}
		if net == network && !w.weak {
			return errors.New("isolate: verify: a process of the worker is in the service's network")
		}
		command, _ := os.ReadFile(proc + "/cmdline")
		if !strings.Contains(string(command), "--type=renderer") {
			continue
		}
		renderers++
		if s["Seccomp"] != "2" || len(strings.Fields(s["NSpid"])) < levels || net == own {
			return errors.New("isolate: verify: Chromium's sandbox is off in a renderer")
		}
	}
	if renderers == 0 {
		return errors.New("isolate: verify: there is no renderer to look at")
	}
	return nil
}

func (w *Worker) sameUser(s map[string]string) error {
	for id := range strings.FieldsSeq(s["Uid"]) {
		if id != strconv.Itoa(w.uid) {
			return fmt.Errorf("isolate: verify: a process of the worker has the user id %q", id)
		}
	}
	return nil
}

// descendants lists the processes below pid. In its pid namespace no process
// escapes this: orphans become children of pid.
func descendants(pid int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("isolate: verify: %w", err)
	}
	children := map[int][]int{}
	for _, e := range entries {
		p, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		s, err := status("/proc/" + e.Name())
		if err != nil {
			continue
		}
		parent, _ := strconv.Atoi(s["PPid"])
		children[parent] = append(children[parent], p)
	}
	found := children[pid]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found, nil
}

// status reads the fields of a process's status file.
func status(proc string) (map[string]string, error) {
	f, err := os.Open(proc + "/status")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fields := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields, lines.Err()
}

// UsersRunning is the set of user ids that some process of the machine has.
func UsersRunning() (map[int]bool, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("isolate: processes: %w", err)
	}
	users := map[int]bool{}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		s, err := status("/proc/" + e.Name())
		if err != nil {
			continue
		}
		for id := range strings.FieldsSeq(s["Uid"]) {
			if n, err := strconv.Atoi(id); err == nil {
				users[n] = true
			}
		}
	}
	return users, nil
}
