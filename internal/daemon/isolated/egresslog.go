package isolated

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/chaperone-agents/chaperone/internal/browser/egress"
)

// maxEgressLog is when the log is set aside as FILE.1, in bytes; one older
// file is kept.
const maxEgressLog = 64 << 20

// egressLog keeps one JSON line per decision of every proxy (PROXY-01).
type egressLog struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex
	file *os.File
	size int64
}

func openEgressLog(path string, log *slog.Logger) (*egressLog, error) {
	l := &egressLog{path: path, log: log}
	return l, l.open()
}

func (l *egressLog) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("egress log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("egress log: %w", err)
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write appends a decision. It reports whether the line is in the file: what
// cannot be written down is not let out.
func (l *egressLog) Write(d egress.Decision) error {
	line, err := json.Marshal(d)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > maxEgressLog {
		if err := os.Rename(l.path, l.path+".1"); err != nil {
			return err
		}
		old := l.file
		if err := l.open(); err != nil {
			return err
		}
		old.Close()
	}
	n, err := l.file.Write(append(line, '\n'))
	l.size += int64(n)
	if err != nil {
		l.log.Error("egress decision not recorded", "cause", err)
	}
	return err
}

func (l *egressLog) Close() error { return l.file.Close() }
