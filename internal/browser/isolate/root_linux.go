package isolate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// stage is where the new root is built: a folder that exists everywhere and
// that every uid can reach.
const stage = "/tmp"

// system is what is shown of the host, read-only; what does not exist is left
// out. Of /etc only what fonts, certificates and the loader need: no accounts,
// no host names, no machine id.
func system() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
		"/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
		"/etc/localtime", "/etc/ssl/certs", "/etc/X11", "/var/cache/fontconfig",
	}
}

// newRoot replaces the root by one in memory that shows the system read-only
// and nothing else of the host, and detaches the old one.
func newRoot(show []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := tmpfs(stage, "size=4m,mode=0755", unix.MS_NOEXEC); err != nil {
		return err
	}
	for _, path := range append(system(), show...) {
		if err := showReadOnly(path); err != nil {
			return fmt.Errorf("show %s: %w", path, err)
		}
	}
	if err := devices(); err != nil {
		return err
	}
	if err := files(); err != nil {
		return err
	}
	if err := os.Mkdir(stage+"/proc", 0o555); err != nil {
		return err
	}
	if err := unix.Mount("proc", stage+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := writable(); err != nil {
		return err
	}
	if err := os.Chdir(stage); err != nil {
		return err
	}
	// Both at the same place: the old root lies over the new one until it is
	// detached.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach the old root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return attributes("/", 0, unix.MOUNT_ATTR_RDONLY)
}

// showReadOnly binds a file or folder, with everything mounted below it, and
// repeats a symbolic link.
func showReadOnly(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || strings.HasPrefix(path+"/", stage+"/") {
		return errors.New("it is not an absolute path outside of " + stage)
	}
	to := stage + path
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case info.IsDir():
		err = os.Mkdir(to, 0o755)
	default:
		err = os.WriteFile(to, nil, 0o644)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(path, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return attributes(to, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

func attributes(path string, flags uint, set uint64) error {
	if err := unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: set}); err != nil {
		return fmt.Errorf("mount attributes (Linux 5.12 or newer is needed): %w", err)
	}
	return nil
}

// devices makes /dev with what programs cannot do without.
func devices() error {
	if err := os.Mkdir(stage+"/dev", 0o755); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		to := stage + "/dev/" + name
		if err := os.WriteFile(to, nil, 0o644); err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+name, to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("show /dev/%s: %w", name, err)
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, stage+"/dev/"+name); err != nil {
			return err
		}
	}
	return nil
}

// files writes the few files of /etc that programs look for, with nothing of
// the host in them.
func files() error {
	id := fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
	for name, text := range map[string]string{
		"passwd":        "browser:x:" + id + ":browser:" + Home + ":/bin/false\n",
		"group":         fmt.Sprintf("browser:x:%d:\n", os.Getgid()),
		"hosts":         "127.0.0.1 localhost\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	} {
		if err := os.WriteFile(stage+"/etc/"+name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writable mounts the places that may be written to; all of them are memory
// and none of them may hold a program.
func writable() error {
	for _, m := range []struct {
		path, options string
	}{
		{"/tmp", tmpSize + ",mode=1777"},
		{"/dev/shm", shmSize + ",mode=1777"},
		{"/etc/chromium", "size=1m,mode=0755"},
	} {
		if err := os.MkdirAll(stage+m.path, 0o755); err != nil {
			return err
		}
		if err := tmpfs(stage+m.path, m.options, unix.MS_NOEXEC); err != nil {
			return err
		}
	}
	if err := os.Mkdir(stage+Home, 0o700); err != nil {
		return err
	}
	if err := os.MkdirAll(stage+PolicyDir, 0o755); err != nil {
		return err
	}
	// X servers want this folder open to all, and nobody else is here.
	x11 := stage + "/tmp/.X11-unix"
	if err := os.Mkdir(x11, 0o700); err != nil {
		return err
	}
	return os.Chmod(x11, 0o777|fs.ModeSticky)
}

func tmpfs(path, options string, flags uintptr) error {
	if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|flags, options); err != nil {
		return fmt.Errorf("memory at %s: %w", strings.TrimPrefix(path, stage), err)
	}
	return nil
}
