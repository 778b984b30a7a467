// Package keyring holds the keys that profiles are sealed with, and reads the
// credential files of the service. Both come from private files and from
// nowhere else (KEY-01, KEY-02, STORE-05): no argument, no environment
// variable, no derived and no default key.
package keyring

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/base/privatefs"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

// KeySize is the size of every key, in bytes.
const KeySize = 32

const (
	currentFile = "current"
	keySuffix   = ".key"
	maxFile     = 4096
)

var versionShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// Keyring is an immutable set of keys, each with an opaque version, one of
// them the current one.
type Keyring struct {
	current string
	keys    map[string]secret.Bytes
}

// Open reads a private directory that holds one file <version>.key per key,
// with the 32 bytes in standard base64, and a file current that names one of
// the versions. Anything else in it is an error, and so are two versions of
// one key.
func Open(dir string) (*Keyring, error) {
	d, err := privatefs.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	k, err := read(d)
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	return k, nil
}

func read(d *privatefs.Dir) (*Keyring, error) {
	names, err := d.Names()
	if err != nil {
		return nil, err
	}
	k := &Keyring{keys: map[string]secret.Bytes{}}
	owner := map[[KeySize]byte]string{}
	for _, name := range names {
		version, isKey := strings.CutSuffix(name, keySuffix)
		if name == currentFile {
			continue
		}
		if !isKey || !versionShape.MatchString(version) {
			return nil, fmt.Errorf("%q is neither %q nor a key file", name, currentFile)
		}
		key, err := readKey(d, name)
		if err != nil {
			return nil, err
		}
		if other, taken := owner[[KeySize]byte(key)]; taken {
			return nil, fmt.Errorf("versions %s and %s are the same key", other, version)
		}
		owner[[KeySize]byte(key)] = version
		k.keys[version] = secret.NewBytes(key)
	}
	current, err := d.Read(currentFile, maxFile)
	if err != nil {
		return nil, err
	}
	k.current = strings.TrimSuffix(string(current), "\n")
	if _, ok := k.keys[k.current]; !ok {
		return nil, fmt.Errorf("%q names a version that has no key file", currentFile)
	}
	return k, nil
}

// readKey never puts the content of a file into an error.
func readKey(d *privatefs.Dir, name string) ([]byte, error) {
	text, err := d.Read(name, maxFile)
	if err != nil {
		return nil, err
	}
	defer clear(text)
	trimmed := strings.TrimSuffix(string(text), "\n")
	key, err := base64.StdEncoding.DecodeString(trimmed)
	if err != nil || len(key) != KeySize || base64.StdEncoding.EncodeToString(key) != trimmed {
		return nil, fmt.Errorf("%s is not the base64 of exactly %d bytes", name, KeySize)
	}
	return key, nil
}

// Current is the version that new seals use.
func (k *Keyring) Current() string { return k.current }

// Key returns a copy of the key with the version, or an error if there is none.
func (k *Keyring) Key(version string) (secret.Bytes, error) {
	key, ok := k.keys[version]
	if !ok {
		return secret.Bytes{}, errors.New("keyring: no key has that version")
	}
	return secret.NewBytes(append([]byte(nil), key.Reveal()...)), nil
}
