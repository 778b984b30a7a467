// Package datadir is the layout of the one folder in which the embedded
// default keeps everything of one owner. The folder is 0700 and every file in
// it 0600; each entry belongs to one program, named beside it (design section
// 1, KEY-02).
package datadir

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

// Dir is a prepared data folder.
type Dir string

func (d Dir) path(name string) string { return filepath.Join(string(d), name) }

func (d Dir) Database() string          { return d.path("chaperone.db") }       // chaperoned
func (d Dir) Images() string            { return d.path("images") }             // chaperoned
func (d Dir) OwnerCredential() string   { return d.path("owner.credential") }   // chaperone, written by chaperoned
func (d Dir) ServiceCredential() string { return d.path("service.credential") } // chaperone-browserd and chaperoned
func (d Dir) Keys() string              { return d.path("keys") }               // chaperone-browserd
func (d Dir) Profiles() string          { return d.path("profiles") }           // chaperone-browserd
func (d Dir) EgressLog() string         { return d.path("egress.jsonl") }       // chaperone-browserd
func (d Dir) Socket() string            { return d.path("browserd.sock") }      // chaperone-browserd
func (d Dir) Running() string           { return d.path("running.json") }       // chaperone up
func (d Dir) lock() string              { return d.path("lock") }               // chaperone up

// maxSocket is the longest path a Unix socket can have on Linux and macOS.
const maxSocket = 103

// Default is the folder used when none is named: $XDG_DATA_HOME/chaperone, or
// .local/share/chaperone in the home folder.
func Default() string {
	if x := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(x) {
		return filepath.Join(x, "chaperone")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "chaperone-data"
	}
	return filepath.Join(home, ".local", "share", "chaperone")
}

// At resolves a folder without touching it.
func At(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	d := Dir(abs)
	if len(d.Socket()) > maxSocket {
		return "", fmt.Errorf("the data folder %s is too long a path for the socket in it (%d bytes at most); choose a shorter one with --data", abs, maxSocket-len("/browserd.sock"))
	}
	return d, nil
}

// Prepare makes the folder private, creating it if needed. It refuses one that
// others can enter, or that cannot be written.
func Prepare(path string) (Dir, error) {
	d, err := At(path)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return "", fmt.Errorf("the data folder cannot be made: %w", err)
	}
	info, err := os.Lstat(string(d))
	if err != nil {
		return "", err
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("the data folder %s must be a folder that only its owner can enter; run: chmod 700 %s", d, d)
	}
	if err := unix.Access(string(d), unix.W_OK); err != nil {
		return "", fmt.Errorf("the data folder %s cannot be written: %w; choose another one with --data", d, err)
	}
	return d, nil
}

// ErrRunning says that another `chaperone up` uses the folder.
var ErrRunning = fault.New(fault.Conflict, "another `chaperone up` is using this data folder; stop it first, or choose another folder with --data")

// Lock takes the folder for one supervisor. The lock ends with the process.
func (d Dir) Lock() (unlock func() error, err error) {
	l := flock.New(d.lock(), flock.SetPermissions(0o600))
	ok, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("the data folder cannot be locked: %w", err)
	}
	if !ok {
		return nil, ErrRunning
	}
	return l.Unlock, nil
}
