package keyring

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/vault/privatefs"
)

// firstVersion is the version of a generated key.
const firstVersion = "k1"

// Generate makes a keyring with one random key in the directory dir, mode
// 0700. It refuses if anything exists there; its parent must exist. The
// keyring appears whole or not at all.
func Generate(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("keyring: %q is not an absolute path", dir)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keyring: %s exists already or cannot be examined; keys are never overwritten", dir)
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

// ReadSecretFile reads a credential: 32 to 512 printable ASCII characters
// without spaces, white space around them ignored, in a private regular file
// of at most 4096 bytes at an absolute path.
func ReadSecretFile(path string) (secret.Text, error) {
	text, err := privatefs.ReadFile(path, maxFile)
	if err != nil {
		return secret.Text{}, fmt.Errorf("secret file: %w", err)
	}
	value := strings.TrimSpace(string(text))
	if len(value) < 32 || len(value) > 512 || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return secret.Text{}, fmt.Errorf("secret file: %s does not hold 32 to 512 printable characters without spaces", path)
	}
	return secret.NewText(value), nil
}

// WriteSecretFile makes a random credential of 43 characters in a new file
// with mode 0600. It refuses if the file exists.
func WriteSecretFile(path string) error {
	if err := privatefs.CreateFile(path, []byte(ident.Token(32)+"\n")); err != nil {
		return fmt.Errorf("secret file: %w", err)
	}
	return nil
}

func syncParent(path string) error {
	f, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
