package keyring

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/privatefs"
)

// firstVersion is the version of a generated key.
const firstVersion = "k1"

// Generate makes a keyring with one random key in the directory dir, mode
// 0700. It returns fs.ErrExist if anything exists there; its parent must
// exist. The keyring appears whole or not at all.
func Generate(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("keyring: %q is not an absolute path", dir)
	}
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("keyring: %s: %w; keys are never overwritten", dir, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keyring: %w", err)
	}
	staged := dir + ".new-" + ident.Hex(8)
	if err := os.Mkdir(staged, 0o700); err != nil {
		return fmt.Errorf("keyring: %w", err)
	}
	err := fill(staged)
	if err == nil {
		err = os.Rename(staged, dir)
	}
	if err != nil {
		return fmt.Errorf("keyring: %w", errors.Join(err, os.RemoveAll(staged)))
	}
	return syncParent(dir)
}

func fill(dir string) error {
	d, err := privatefs.Open(dir)
	if err != nil {
		return err
	}
	key := make([]byte, KeySize)
	rand.Read(key) // never fails: crypto/rand ends the program instead
	err = d.Stage(firstVersion+keySuffix, []byte(base64.StdEncoding.EncodeToString(key)+"\n"))
	if err == nil {
		err = d.Stage(currentFile, []byte(firstVersion+"\n"))
	}
	if err == nil {
		err = d.Sync()
	}
	return errors.Join(err, d.Close())
}

func syncParent(path string) error {
	f, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
