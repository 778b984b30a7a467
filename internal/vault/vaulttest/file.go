package vaulttest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/vault"
)

// file is an envelope as this package understands it, apart from the vault's
// own reader.
type file struct {
	Metadata   json.RawMessage `json:"metadata"`
	Nonce      []byte          `json:"nonce"`
	Ciphertext []byte          `json:"ciphertext"`
}

// path is where the record must be.
func (b *bench) path(r vault.Record) string {
	sum := sha256.Sum256([]byte(r.Ref))
	return filepath.Join(b.config.Dir, hex.EncodeToString(sum[:])+".profile")
}

func (b *bench) file(r vault.Record) (file, error) {
	var f file
	data, err := os.ReadFile(b.path(r))
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	return f, err
}

// aead is AES-256-GCM under the key with the version.
func (b *bench) aead(version string) (cipher.AEAD, error) {
	text, err := os.ReadFile(filepath.Join(b.config.KeyDir, version+".key"))
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != 32 {
		return nil, fmt.Errorf("key %s is not the base64 of 32 bytes", version)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// decrypt opens a record's file with the metadata bytes as they stand in it.
func (b *bench) decrypt(r vault.Record) (meta map[string]any, plaintext []byte, err error) {
	f, err := b.file(r)
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(f.Metadata, &meta); err != nil {
		return nil, nil, err
	}
	version, _ := meta["key_version"].(string)
	a, err := b.aead(version)
	if err != nil {
		return nil, nil, err
	}
	if len(f.Nonce) != a.NonceSize() {
		return nil, nil, fmt.Errorf("the nonce has %d bytes", len(f.Nonce))
	}
	plaintext, err = a.Open(nil, f.Nonce, f.Ciphertext, f.Metadata)
	return meta, plaintext, err
}
