package mediawiki

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/guest"
)

// Account is the wiki's account, signed in with a password alone: an
// administrator who prepares pages and reads MediaWiki's own logs past the
// product.
type Account struct {
	w *Wiki
	c *http.Client
}

// Account signs in. The second step must not be on.
func (w *Wiki) Account(ctx context.Context) (*Account, error) {
	c, err := w.enter(ctx)
	if err != nil {
		return nil, err
	}
	return &Account{w, c}, nil
}

// enter signs a client in with the password.
func (w *Wiki) enter(ctx context.Context) (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	c := &http.Client{Timeout: 60 * time.Second, Transport: guest.Direct{Addr: w.addr}, Jar: jar}
	_, page, err := get(ctx, c, w.SignInURL())
	if err != nil {
		return nil, err
	}
	form := hidden(page)
	form.Set("wpName", w.User)
	form.Set("wpPassword", w.Password)
	if _, page, err = post(ctx, c, w.SignInURL(), form); err != nil {
		return nil, err
	}
	if u := userIs.FindStringSubmatch(page); u == nil || u[1] != w.User {
		return nil, errors.New("mediawiki: the account cannot sign in")
	}
	return c, nil
}

// Handler is the wiki behind a single sign-on: whoever asks is the account.
// The account's cookies stay on this side.
func (a *Account) Handler() http.Handler {
	return guest.SignedIn(a.w.Host, a.w.addr, a.c.Jar, a.w.note)
}

// Write saves a page.
func (a *Account) Write(ctx context.Context, title, text string) error {
	return a.do(ctx, "csrf", url.Values{"action": {"edit"}, "title": {title}, "text": {text}})
}

// Speak sets the language that MediaWiki speaks to the account.
func (a *Account) Speak(ctx context.Context, language string) error {
	return a.do(ctx, "csrf", url.Values{"action": {"options"}, "change": {"language=" + language}})
}

// Invite makes another account, without rights.
func (a *Account) Invite(ctx context.Context, name string) error {
	pass := "pw-" + random()
	return a.do(ctx, "createaccount", url.Values{
		"action": {"createaccount"}, "username": {name}, "password": {pass}, "retype": {pass}, "createreturnurl": {"https://" + a.w.Host + "/"},
	})
}

// do sends a form to MediaWiki's API, with the kind of token that it needs.
func (a *Account) do(ctx context.Context, kind string, form url.Values) error {
	var t struct {
		Query struct{ Tokens map[string]string }
	}
	if err := a.w.ask(ctx, a.c, &t, url.Values{"action": {"query"}, "meta": {"tokens"}, "type": {kind}}); err != nil {
		return err
	}
	field := map[string]string{"csrf": "token", "createaccount": "createtoken"}[kind]
	form.Set(field, t.Query.Tokens[kind+"token"])
	form.Set("format", "json")
	status, text, err := post(ctx, a.c, a.w.api(nil), form)
	if err != nil {
		return err
	}
	if status != http.StatusOK || strings.Contains(text, `"error"`) || strings.Contains(text, `"FAIL"`) {
		return fmt.Errorf("mediawiki: the API answered %d to %s: %.300s", status, form.Get("action"), text)
	}
	return nil
}

// Event is an entry of one of MediaWiki's logs.
type Event struct{ Type, Action, Title, User string }

// Logged lists what MediaWiki's log of that type (delete, rights, upload)
// holds, newest first, at most 500.
func (w *Wiki) Logged(ctx context.Context, kind string) ([]Event, error) {
	var answer struct {
		Query struct{ LogEvents []Event }
	}
	err := w.ask(ctx, w.client, &answer, url.Values{"action": {"query"}, "list": {"logevents"}, "letype": {kind}, "lelimit": {"500"}})
	return answer.Query.LogEvents, err
}

// Groups lists the groups that the user is in.
func (w *Wiki) Groups(ctx context.Context, user string) ([]string, error) {
	var answer struct {
		Query struct{ Users []struct{ Groups []string } }
	}
	err := w.ask(ctx, w.client, &answer, url.Values{"action": {"query"}, "list": {"users"}, "ususers": {user}, "usprop": {"groups"}})
	if err == nil && len(answer.Query.Users) != 1 {
		err = errors.New("mediawiki: the API knows no such user")
	}
	if err != nil {
		return nil, err
	}
	return answer.Query.Users[0].Groups, nil
}

// Says is what MediaWiki's messages say in a language, by key, as they are on
// buttons. The argument is a user's name.
func (w *Wiki) Says(ctx context.Context, language, argument string, keys ...string) (map[string]string, error) {
	var answer struct {
		Query struct {
			AllMessages []struct {
				Name, Content string
				Missing       bool
			}
		}
	}
	err := w.ask(ctx, w.client, &answer, url.Values{
		"action": {"query"}, "meta": {"allmessages"}, "ammessages": {strings.Join(keys, "|")}, "amlang": {language}, "amargs": {argument}, "amenableparser": {"1"},
	})
	if err != nil {
		return nil, err
	}
	says := map[string]string{}
	for _, m := range answer.Query.AllMessages {
		if m.Missing || m.Content == "" {
			return nil, fmt.Errorf("mediawiki: there is no message %s", m.Name)
		}
		says[m.Name] = m.Content
	}
	return says, nil
}

// File returns what was uploaded under the title, without "File:".
func (w *Wiki) File(ctx context.Context, title string) ([]byte, error) {
	status, body, err := get(ctx, w.client, "https://"+w.Host+"/index.php?title=Special:Redirect/file/"+url.QueryEscape(title))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("mediawiki: the file answered %d", status)
	}
	return []byte(body), err
}

func (w *Wiki) api(q url.Values) string { return "https://" + w.Host + "/api.php?" + q.Encode() }

// ask reads from MediaWiki's API.
func (w *Wiki) ask(ctx context.Context, c *http.Client, v any, q url.Values) error {
	q.Set("format", "json")
	q.Set("formatversion", "2")
	status, text, err := get(ctx, c, w.api(q))
	if err == nil {
		err = json.Unmarshal([]byte(text), v)
	}
	if err != nil {
		return fmt.Errorf("mediawiki: the API answered %d: %w", status, err)
	}
	return nil
}
