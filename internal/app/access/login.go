package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/device"
	"github.com/chaperone-agents/chaperone/internal/store"
)

const (
	codeBytes = 10               // 80 bits: four groups of four characters
	codeLife  = 10 * time.Minute // from making to use
	maxCodes  = 16               // unused ones; a further one replaces the oldest
	maxWrong  = 10               // wrong codes within wrongSpan, over all callers
	wrongSpan = time.Minute
)

// codes are the login codes that may still be used. They live in memory only,
// by digest, and do not survive a restart.
type codes struct {
	unused map[[sha256.Size]byte]login
	scopes map[caller.Scope]bool // every scope that a code was made for: they hear of wrong ones
	wrong  []time.Time           // the wrong attempts within wrongSpan
}

type login struct {
	scope   caller.Scope
	expires time.Time
}

func newCodes() codes {
	return codes{unused: map[[sha256.Size]byte]login{}, scopes: map[caller.Scope]bool{}}
}

// NewLoginCode makes a code, such as K3TQ-7ZPA-XW2M-EJ5D, with which one
// browser can sign in to the console of the scope, once, within ten minutes.
func (a *Access) NewLoginCode(scope caller.Scope) secret.Text {
	raw := make([]byte, codeBytes)
	rand.Read(raw)
	plain := base32.StdEncoding.EncodeToString(raw)
	var groups []string
	for group := range slices.Chunk([]byte(plain), 4) {
		groups = append(groups, string(group))
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.Now()
	maps.DeleteFunc(a.codes.unused, func(_ [sha256.Size]byte, l login) bool { return !now.Before(l.expires) })
	for len(a.codes.unused) >= maxCodes {
		a.codes.dropOldest()
	}
	a.codes.unused[sha256.Sum256([]byte(plain))] = login{scope, now.Add(codeLife)}
	a.codes.scopes[scope] = true
	return secret.NewText(strings.Join(groups, "-"))
}

func (c *codes) dropOldest() {
	var oldest [sha256.Size]byte
	var when time.Time
	for k, l := range c.unused {
		if when.IsZero() || l.expires.Before(when) {
			oldest, when = k, l.expires
		}
	}
	delete(c.unused, oldest)
}

// Login spends a code and returns the credential of a new owner's device for
// the console. Case, spaces and hyphens do not matter. Every wrong code is
// audited; after ten within a minute, from whomever, any code is refused until
// a minute has passed since the oldest of them. It returns fault.Unauthenticated.
func (a *Access) Login(ctx context.Context, code string) (secret.Text, error) {
	l, ok, err := a.spend(code)
	if err != nil {
		return secret.Text{}, err
	}
	if !ok {
		return secret.Text{}, errors.Join(
			fault.New(fault.Unauthenticated, "The login code is wrong, used or expired. Nothing was done; ask for a new one."),
			a.noteRefusal(ctx))
	}
	d, credential, err := a.Pair(ctx, system(l.scope), consoleName, caller.Owner, "")
	if err != nil {
		return secret.Text{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.consoles[d.Fingerprint] = true
	return credential, nil
}

// consoleName is what the devices that Login makes are called.
const consoleName = "console"

// stale reports whether d is a console session of an earlier process. It does
// not outlive the program that made it: while that is gone, another program can
// listen at its address, and what a browser sends there must be worth nothing.
func (a *Access) stale(d device.Device) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return d.Role == caller.Owner && d.Name == consoleName && !a.consoles[d.Fingerprint]
}

// EndConsoles revokes the scope's console sessions of earlier processes, which
// are refused already, on record and in one transaction. Of more than 200 live
// devices it leaves out the oldest.
func (a *Access) EndConsoles(ctx context.Context, scope caller.Scope) error {
	by := system(scope)
	if err := by.RequireOwner(); err != nil {
		return err
	}
	return public(a.Store.Tx(ctx, scope, func(tx store.Tx) error {
		all, err := tx.Devices(true, listLimit)
		if err != nil {
			return err
		}
		for _, d := range all {
			if !a.stale(d) {
				continue
			}
			if err := errors.Join(tx.RevokeDevice(d.Fingerprint, a.Now()), a.note(tx, by, audit.DeviceRevoked, d.Fingerprint, string(d.Role))); err != nil {
				return err
			}
		}
		return nil
	}))
}

// spend takes a code away from everybody else.
func (a *Access) spend(code string) (login, bool, error) {
	digest := sha256.Sum256([]byte(plainCode(code)))
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.Now()
	c := &a.codes
	c.wrong = slices.DeleteFunc(c.wrong, func(t time.Time) bool { return now.Sub(t) >= wrongSpan })
	if len(c.wrong) >= maxWrong {
		return login{}, false, fault.New(fault.Unauthenticated, "There were too many wrong login codes. Nothing was done; try again in a minute.").Retry()
	}
	l, ok := c.unused[digest]
	delete(c.unused, digest)
	if ok && now.Before(l.expires) {
		return l, true, nil
	}
	c.wrong = append(c.wrong, now)
	return login{}, false, nil
}

// noteRefusal audits a wrong code in every scope that it may have been meant
// for; the limit on wrong codes bounds how many entries that makes.
func (a *Access) noteRefusal(ctx context.Context) error {
	a.mu.Lock()
	scopes := slices.Collect(maps.Keys(a.codes.scopes))
	a.mu.Unlock()
	var errs []error
	for _, scope := range scopes {
		err := a.Store.Tx(ctx, scope, func(tx store.Tx) error {
			return a.note(tx, system(scope), audit.LoginRefused, "", "")
		})
		errs = append(errs, public(err))
	}
	return errors.Join(errs...)
}

// plainCode is a code as it was made, however it was typed.
func plainCode(typed string) string {
	if len(typed) > 64 {
		return ""
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '-' || r == ' ' || r == '\t' || r == '\n' || r == '\r':
			return -1
		case r == '0':
			return 'O'
		case r == '1':
			return 'I'
		case r == '8':
			return 'B'
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		}
		return r
	}, typed)
}
