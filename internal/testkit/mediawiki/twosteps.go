package mediawiki

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// period is how long a one-time code is the current one.
const period = 30 * time.Second

// Code is the account's one-time code at the time, as its owner's telephone
// would show it. MediaWiki takes each code once.
func (w *Wiki) Code(at time.Time) string {
	var msg [8]byte
	binary.BigEndian.PutUint64(msg[:], uint64(at.Unix()/int64(period/time.Second)))
	m := hmac.New(sha1.New, w.secret)
	m.Write(msg[:])
	sum := m.Sum(nil)
	at4 := sum[sum[19]&15:]
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(at4)&0x7fffffff%1_000_000)
}

var (
	inputs  = regexp.MustCompile(`<(?:input|button)\b[^>]*>`)
	name    = regexp.MustCompile(`\bname=["']([^"']*)["']`)
	value   = regexp.MustCompile(`\bvalue=["']([^"']*)["']`)
	secrets = regexp.MustCompile(`\b[A-Z2-7]{4}(?: [A-Z2-7]{1,4}){4,}`)
)

// hidden collects the named hidden values of a page's content.
func hidden(page string) url.Values {
	v := url.Values{}
	page, _, _ = strings.Cut(page, `id="searchform"`) // the skin's own form is the last
	for _, tag := range inputs.FindAllString(page, -1) {
		n := name.FindStringSubmatch(tag)
		x := value.FindStringSubmatch(tag)
		if n != nil && x != nil && strings.Contains(tag, "hidden") {
			v.Set(n[1], html.UnescapeString(x[1]))
		}
	}
	return v
}

// enrol signs in as the account's owner and turns the second step on.
func (w *Wiki) enrol(ctx context.Context) error {
	c, err := w.enter(ctx)
	if err != nil {
		return err
	}
	enable := "https://" + w.Host + "/index.php?title=Special:Manage_Two-factor_authentication&action=enable&module=totp"
	_, page, err := get(ctx, c, enable)
	if err != nil {
		return err
	}
	shown := secrets.FindString(page)
	w.secret, err = base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ReplaceAll(shown, " ", ""))
	if err != nil || len(w.secret) < 16 {
		return errors.New("mediawiki: no secret for one-time codes on the page")
	}
	form := hidden(page)
	// A code works once, and a little late: an older one leaves the current
	// one to the first sign-in.
	form.Set("token", w.Code(time.Now().Add(-2*period)))
	if _, _, err = post(ctx, c, enable, form); err != nil {
		return err
	}
	if _, page, err = get(ctx, c, "https://"+w.Host+"/index.php?title=Special:Manage_Two-factor_authentication"); err != nil {
		return err
	}
	if !strings.Contains(page, "action=disable") {
		return errors.New("mediawiki: the second step was not turned on")
	}
	return nil
}
