package mediawiki

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/testkit/guest"
)

// packages are fetched and unpacked, not installed: nothing of the machine's
// own changes.
var packages = []string{"mediawiki", "mediawiki-classes"}

// modules are what PHP itself needs, with the Debian package of each.
var modules = map[string]string{"intl": "php-intl", "mbstring": "php-mbstring", "xml": "php-xml", "pdo_sqlite": "php-sqlite3"}

func checkPHP(ctx context.Context) error {
	for program, pkg := range map[string]string{"php": "php-cli", "dpkg": "dpkg"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: the program %s; install the package %s", ErrMissing, program, pkg)
		}
	}
	out, err := exec.CommandContext(ctx, "php", "-m").Output()
	if err != nil {
		return fmt.Errorf("mediawiki: php -m: %w", err)
	}
	have := strings.Fields(strings.ToLower(string(out)))
	var need []string
	for m, pkg := range modules {
		if !slices.Contains(have, m) {
			need = append(need, pkg)
		}
	}
	if len(need) > 0 {
		slices.Sort(need)
		return fmt.Errorf("%w: PHP modules; install %s", ErrMissing, strings.Join(need, " "))
	}
	return nil
}

// unpack returns the folder of a MediaWiki that belongs to the unprivileged
// user.
func (c *Config) unpack(ctx context.Context) (string, error) {
	files, err := c.fetch(ctx)
	if err != nil {
		return "", err
	}
	if err := c.user().Own(); err != nil {
		return "", fmt.Errorf("mediawiki: %w", err)
	}
	for _, f := range files {
		// The package file may lie where the unprivileged user cannot look.
		in, err := os.Open(f)
		if err != nil {
			return "", fmt.Errorf("mediawiki: %w", err)
		}
		copied := filepath.Join(c.Dir, "package.deb")
		cmd := c.command(ctx, c.Dir, "dd", "of="+copied, "bs=1M", "status=none")
		cmd.Stdin = in
		err = guest.Run(cmd)
		in.Close()
		if err != nil {
			return "", err
		}
		if err := guest.Run(c.command(ctx, c.Dir, "dpkg", "-x", copied, "root")); err != nil {
			return "", err
		}
		if err := guest.Run(c.command(ctx, c.Dir, "rm", copied)); err != nil {
			return "", err
		}
	}
	app := filepath.Join(c.Dir, "root", "usr", "share", "mediawiki")
	// The package links data and settings to places of the machine.
	links, err := filepath.Glob(filepath.Join(app, "*"))
	if err != nil {
		return "", fmt.Errorf("mediawiki: %w", err)
	}
	for _, l := range links {
		if st, err := os.Lstat(l); err == nil && st.Mode()&fs.ModeSymlink != 0 {
			if err := guest.Run(c.command(ctx, app, "rm", l)); err != nil {
				return "", err
			}
		}
	}
	return app, guest.Run(c.command(ctx, app, "mv", "extensions-core", "extensions"))
}

// fetch returns the package files in the cache, after loading those that are
// not there.
func (c *Config) fetch(ctx context.Context) ([]string, error) {
	if err := os.MkdirAll(c.Cache, 0o755); err != nil {
		return nil, fmt.Errorf("mediawiki: %w", err)
	}
	var files []string
	for _, p := range packages {
		found, err := filepath.Glob(filepath.Join(c.Cache, p+"_*.deb"))
		if err != nil {
			return nil, fmt.Errorf("mediawiki: %w", err)
		}
		if len(found) == 0 {
			if _, err := exec.LookPath("apt-get"); err != nil {
				return nil, fmt.Errorf("%w: apt-get; put the Debian package file of %s into %s", ErrMissing, p, c.Cache)
			}
			// It is whole before it has its name in the cache.
			tmp, err := os.MkdirTemp(c.Cache, "fetch-")
			if err != nil {
				return nil, fmt.Errorf("mediawiki: %w", err)
			}
			defer os.RemoveAll(tmp)
			cmd := exec.CommandContext(ctx, "apt-get", "-q", "download", p)
			cmd.Dir = tmp
			if err := guest.Run(cmd); err != nil {
				return nil, fmt.Errorf("%w: package %s: %w", ErrMissing, p, err)
			}
			loaded, err := filepath.Glob(filepath.Join(tmp, p+"_*.deb"))
			if err != nil || len(loaded) != 1 {
				return nil, fmt.Errorf("%w: apt-get loaded no package file of %s", ErrMissing, p)
			}
			to := filepath.Join(c.Cache, filepath.Base(loaded[0]))
			if err := os.Rename(loaded[0], to); err != nil {
				return nil, fmt.Errorf("mediawiki: %w", err)
			}
			found = []string{to}
		}
		slices.Sort(found)
		files = append(files, found[len(found)-1])
	}
	return files, nil
}
