package privatefs

import (
	"fmt"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

const maxSecret = 4096 // bytes of a credential file

// ReadSecretFile reads a credential: 32 to 512 printable ASCII characters
// without spaces, white space around them ignored, in a private regular file
// of at most 4096 bytes at an absolute path.
func ReadSecretFile(path string) (secret.Text, error) {
	text, err := ReadFile(path, maxSecret)
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
	if err := CreateFile(path, []byte(ident.Token(32)+"\n")); err != nil {
		return fmt.Errorf("secret file: %w", err)
	}
	return nil
}
