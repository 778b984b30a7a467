package driver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	protocdp "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/cdproto/target"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
)

// sessionBound is the time that restoring or reading a session may take.
const sessionBound = 60 * time.Second

// Restore loads a session before the first navigation, without a request:
// cookies into the jar, and localStorage on an empty document of each origin.
// Anything short of the whole is an error, and the browser must not be used.
func (p *Page) Restore(ctx context.Context, m browser.Material) error {
	leave, err := p.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, sessionBound)
	defer cancel()
	if err := p.restore(ctx, m); err != nil {
		return fault.Wrap(fault.ProviderUnavailable, "The saved session could not be restored.", err)
	}
	return nil
}

func (p *Page) restore(ctx context.Context, m browser.Material) error {
	cookies := make([]*network.CookieParam, len(m.Cookies))
	for i, c := range m.Cookies {
		cookies[i] = cookieParam(c)
	}
	if len(cookies) > 0 {
		if _, err := cdp.Call(ctx, p.root, storage.SetCookies, storage.SetCookiesParams{Cookies: cookies}); err != nil {
			return fmt.Errorf("cookies: %w", err)
		}
	}
	return p.withClerk(ctx, func(read *clerk) error {
		for _, o := range m.Origins {
			origin, err := site.ParseOrigin(o.Origin)
			if err != nil || !p.config.Origins.Has(origin) {
				return fmt.Errorf("a storage origin is not allowed")
			}
			if err := read.visit(ctx, origin.String()); err != nil {
				return err
			}
			var n int
			if err := read.ask(ctx, pagejs.WriteStorage, map[string]any{"items": o.Items}, &n); err != nil {
				return err
			}
			if n < len(o.Items) {
				return fmt.Errorf("storage was not taken whole")
			}
			p.mu.Lock()
			p.visited[origin.String()] = true
			p.mu.Unlock()
		}
		return nil
	})
}

// Capture reads the session: every cookie, and the localStorage of every
// allowed origin that was visited or restored. The page that is open is not
// touched.
func (p *Page) Capture(ctx context.Context) (browser.Material, error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return browser.Material{}, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, sessionBound)
	defer cancel()
	m, err := p.captureSession(ctx)
	if err != nil {
		return browser.Material{}, fault.Wrap(fault.ProviderUnavailable, "The session could not be read whole.", err)
	}
	return m, nil
}

func (p *Page) captureSession(ctx context.Context) (browser.Material, error) {
	cookies, err := p.cookies(ctx)
	if err != nil {
		return browser.Material{}, err
	}
	m := browser.Material{Cookies: cookies, Origins: []browser.Storage{}}
	p.mu.Lock()
	var origins []string
	for o := range p.visited {
		if origin, err := site.ParseOrigin(o); err == nil && p.config.Origins.Has(origin) {
			origins = append(origins, origin.String())
		}
	}
	p.mu.Unlock()
	slices.Sort(origins)
	err = p.withClerk(ctx, func(read *clerk) error {
		for _, o := range origins {
			if err := read.visit(ctx, o); err != nil {
				return err
			}
			items := []browser.Item{}
			if err := read.ask(ctx, pagejs.ReadStorage, struct{}{}, &items); err != nil {
				return err
			}
			if len(items) > 0 {
				m.Origins = append(m.Origins, browser.Storage{Origin: o, Items: items})
			}
		}
		return nil
	})
	if err != nil {
		return browser.Material{}, err
	}
	return m, nil
}

func (p *Page) cookies(ctx context.Context) ([]browser.Cookie, error) {
	r, err := cdp.Call(ctx, p.root, storage.GetCookies, storage.GetCookiesParams{})
	if err != nil {
		return nil, err
	}
	out := make([]browser.Cookie, 0, len(r.Cookies))
	for _, c := range r.Cookies {
		if c.PartitionKeyOpaque {
			continue // belongs to one document that cannot come back
		}
		k := browser.Cookie{
			Name: c.Name, Value: c.Value, Domain: c.Domain, Path: c.Path, Expires: c.Expires, HTTPOnly: c.HTTPOnly, Secure: c.Secure,
			SameSite: string(c.SameSite), Priority: string(c.Priority), SourceScheme: string(c.SourceScheme), SourcePort: int(c.SourcePort),
		}
		if c.Session {
			k.Expires = -1
		}
		if c.PartitionKey != nil {
			k.Partition = &browser.PartitionKey{TopLevelSite: c.PartitionKey.TopLevelSite, HasCrossSiteAncestor: c.PartitionKey.HasCrossSiteAncestor}
		}
		out = append(out, k)
	}
	return out, nil
}

// cookieParam gives a host-only cookie its host through a URL, because a
// domain would widen it to the host's subdomains.
func cookieParam(c browser.Cookie) *network.CookieParam {
	k := &network.CookieParam{
		Name: c.Name, Value: c.Value, Path: c.Path, Secure: c.Secure, HTTPOnly: c.HTTPOnly,
		SameSite: network.CookieSameSite(c.SameSite), Priority: network.CookiePriority(c.Priority),
		SourceScheme: network.CookieSourceScheme(c.SourceScheme), SourcePort: int64(c.SourcePort),
	}
	if strings.HasPrefix(c.Domain, ".") {
		k.Domain = c.Domain
	} else {
		scheme := "https"
		if !c.Secure { // an address of https would make it secure
			scheme = "http"
		}
		k.URL = (&url.URL{Scheme: scheme, Host: c.Domain, Path: c.Path}).String()
	}
	if c.Expires >= 0 {
		k.Expires = protocdp.TimeSinceEpoch(c.Expires)
	}
	if c.Partition != nil {
		k.PartitionKey = &network.CookiePartitionKey{TopLevelSite: c.Partition.TopLevelSite, HasCrossSiteAncestor: c.Partition.HasCrossSiteAncestor}
	}
	return k
}

// clerk is a page of our own whose every document is empty and made by us.
type clerk struct {
	page    *Page
	session *cdp.Session
	id      string
	origin  string
}

// withClerk makes a clerk for one errand.
func (p *Page) withClerk(ctx context.Context, errand func(*clerk) error) error {
	yes := true
	p.creation.Lock()
	made, err := cdp.Call(ctx, p.root, target.CreateTarget, target.CreateTargetParams{URL: "about:blank", Background: &yes})
	if err == nil {
		p.mu.Lock()
		p.clerkID, p.clerk = string(made.TargetID), nil
		p.mu.Unlock()
	}
	p.creation.Unlock()
	if err != nil {
		return fmt.Errorf("storage page: %w", err)
	}
	err = p.until(ctx, func() bool { return p.clerk != nil })
	if err == nil {
		p.mu.Lock()
		c := &clerk{page: p, session: p.clerk, id: p.clerkID}
		p.mu.Unlock()
		err = errand(c)
	}
	_, gone := cdp.Call(ctx, p.root, target.CloseTarget, target.CloseTargetParams(made))
	if gone != nil { // a page that is neither ours nor closed must not stay
		_ = p.conn.Close()
	}
	return errors.Join(err, gone)
}

func (c *clerk) visit(ctx context.Context, origin string) error {
	r, err := cdp.Call(ctx, c.session, page.Navigate, page.NavigateParams{URL: origin + "/"})
	if err != nil {
		return err
	}
	if r.ErrorText != "" {
		return fmt.Errorf("storage of an origin: %s", r.ErrorText)
	}
	c.origin = origin
	return nil
}

func (c *clerk) ask(ctx context.Context, fn pagejs.Function, argument, answer any) error {
	kit, err := install(ctx, c.session, c.id)
	if err != nil {
		return err
	}
	return invoke(ctx, c.session, kit.object, fn, argument, answer)
}
