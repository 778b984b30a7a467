package ownerapi

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

// A console session is a device credential in two halves, of which neither
// says anything about it: an HttpOnly cookie, and a key that the console's
// pages keep and send in a header. A cookie alone would also go to every other
// program that listens on this host name, on whatever port; and a page of such
// a program could send it here. Neither has the key. Both end with this process
// (app/access), and the pages send neither to another one.
const (
	cookieName = "chaperone_console"
	keyHeader  = "X-Console-Key"
	// instanceHeader tells one process from the next, to anybody who asks.
	instanceHeader = "Chaperone-Instance"
)

// split makes the two halves of a credential.
func split(credential secret.Text) (cookie, key string) {
	whole := []byte(credential.Reveal())
	pad := make([]byte, len(whole))
	rand.Read(pad) // never fails
	for i := range whole {
		whole[i] ^= pad[i]
	}
	return base64.RawURLEncoding.EncodeToString(pad), base64.RawURLEncoding.EncodeToString(whole)
}

// join puts the halves together; it is empty if they do not fit.
func join(cookie, key string) secret.Text {
	if len(cookie) > 512 || len(key) != len(cookie) {
		return secret.Text{}
	}
	pad, err := base64.RawURLEncoding.DecodeString(cookie)
	whole, err2 := base64.RawURLEncoding.DecodeString(key)
	if err != nil || err2 != nil || len(pad) != len(whole) {
		return secret.Text{}
	}
	for i := range whole {
		whole[i] ^= pad[i]
	}
	return secret.NewText(string(whole))
}

func consoleCredential(r *http.Request) secret.Text {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return secret.Text{}
	}
	return join(c.Value, r.Header.Get(keyHeader))
}

// cookie is the Set-Cookie value of a console session; an empty half ends it.
func (s *server) cookie(half string) string {
	c := http.Cookie{
		Name: cookieName, Value: half, Path: "/v1/",
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: strings.HasPrefix(s.Console, "https://"),
	}
	if half == "" {
		c.MaxAge = -1
	}
	return c.String()
}
