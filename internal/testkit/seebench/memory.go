package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
)

// memory is the proportional set size of the processes, in bytes: what each
// has alone, and its part of what it shares.
func memory(which leak.Which) (bytes int64, processes int, err error) {
	alive, err := leak.Alive(which)
	if err != nil {
		return 0, 0, err
	}
	for _, p := range alive {
		rollup, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "smaps_rollup"))
		if err != nil {
			return 0, 0, fmt.Errorf("memory of %s: %w", p, err)
		}
		for line := range strings.Lines(string(rollup)) {
			if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
				kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
				if err != nil {
					return 0, 0, fmt.Errorf("memory of %s: %w", p, err)
				}
				bytes += kb << 10
			}
		}
		processes++
	}
	if processes == 0 {
		return 0, 0, fmt.Errorf("memory: no process")
	}
	return bytes, processes, nil
}
