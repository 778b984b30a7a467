// Package privatefs reads and writes files that only this service's user may
// see: keys, credentials and sealed profiles (KEY-02, STORE-02, STORE-08).
// A directory or file that is a symbolic link, belongs to another user, or is
// accessible to group or other is refused, never repaired.
package privatefs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/chaperone-agents/chaperone/internal/base/ident"
)

// Dir is an open private directory. Names are single file names in it.
type Dir struct{ root *os.Root }

// Open opens the directory at an absolute path. It refuses a symbolic link,
// another owner, and access for group or other.
func Open(path string) (*Dir, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%q is not an absolute path", path)
	}
	seen, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil {
		err = private(path, opened, true)
	}
	if err == nil && !os.SameFile(seen, opened) {
		err = fmt.Errorf("%s is a symbolic link, or was replaced while it was opened", path)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Dir{root: root}, nil
}

// Close releases the directory.
func (d *Dir) Close() error { return d.root.Close() }

// Names lists everything in the directory, hidden files included.
func (d *Dir) Names() ([]string, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

// Read returns a private regular file of at most max bytes. It never follows
// a symbolic link and never waits on a pipe.
func (d *Dir) Read(name string, max int64) ([]byte, error) {
	seen, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := private(name, seen, false); err != nil {
		return nil, err
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opened, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !os.SameFile(seen, opened):
		return nil, fmt.Errorf("%s was replaced while it was opened", name)
	case opened.Size() > max:
		return nil, fmt.Errorf("%s is larger than %d bytes", name, max)
	}
	data := make([]byte, opened.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// Stage writes a new file with mode 0600 and syncs it; a failure leaves
// nothing behind. fs.ErrExist if the name is taken.
func (d *Dir) Stage(name string, data []byte) error {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, d.root.Remove(name))
	}
	return nil
}

// Link gives a staged file its name; fs.ErrExist if the name is taken.
func (d *Dir) Link(staged, name string) error { return d.root.Link(staged, name) }

// Rename gives a staged file its name, in place of the file that has it.
func (d *Dir) Rename(staged, name string) error { return d.root.Rename(staged, name) }

// Remove unlinks a file.
func (d *Dir) Remove(name string) error { return d.root.Remove(name) }

// Sync makes the names durable.
func (d *Dir) Sync() error {
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// private checks type, owner and mode.
func private(name string, info fs.FileInfo, dir bool) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case dir && !info.IsDir():
		return fmt.Errorf("%s is not a directory", name)
	case !dir && !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", name)
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s does not belong to the user that this program runs as", name)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is accessible to its group or to others (mode %04o)", name, info.Mode().Perm())
	}
	return nil
}

// ReadFile reads a private regular file of at most max bytes at an absolute
// path; the directory it is in may be readable by others.
func ReadFile(path string, max int64) ([]byte, error) {
	d, err := parent(path)
	if err != nil {
		return nil, err
	}
	data, err := d.Read(filepath.Base(path), max)
	return data, errors.Join(err, d.Close())
}

// CreateFile makes a new private file at an absolute path; it appears whole or
// not at all. fs.ErrExist if the path is taken.
func CreateFile(path string, data []byte) error {
	d, err := parent(path)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	staged := "." + name + ".new-" + ident.Hex(8)
	if err = d.Stage(staged, data); err == nil {
		err = errors.Join(d.Link(staged, name), d.Remove(staged))
	}
	if err == nil {
		err = d.Sync()
	}
	return errors.Join(err, d.Close())
}

func parent(path string) (*Dir, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%q is not an absolute path", path)
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return &Dir{root: root}, nil
}
