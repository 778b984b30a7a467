package chromiumtest

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
)

// adopt makes the test binary the parent of what its browsers leave behind, and
// buries it at once. A browser has ended when its last process has been waited
// for; on some machines the first process does that once a second, or never.
func adopt() error {
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); e != 0 {
		return e
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			bury()
		}
	}()
	return nil
}

// bury waits for the dead children that were adopted. Those are in a process
// group that somebody else leads; a child that the tests started leads its own
// group or is in theirs, and whoever started it waits for it.
func bury() {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has gone
		}
		// "pid (name) state parent group ..."; a name may contain anything.
		fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		if len(fields) < 3 || string(fields[0]) != "Z" || string(fields[1]) != strconv.Itoa(os.Getpid()) {
			continue
		}
		pid, group := filepath.Base(filepath.Dir(file)), string(fields[2])
		if n, err := strconv.Atoi(pid); err == nil && group != pid && group != strconv.Itoa(syscall.Getpgrp()) {
			_, _ = syscall.Wait4(n, nil, syscall.WNOHANG, nil) // it is dead already
		}
	}
}
