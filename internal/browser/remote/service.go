package remote

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

var _ browser.Service = (*Client)(nil)

// Provision implements browser.Service.
func (c *Client) Provision(ctx context.Context, scope caller.Scope, profileID string, origins site.Origins) (browser.Provisioned, error) {
	var a ProvisionAnswer
	err := c.call(ctx, request{
		path: "/v1/browser-profiles:provision", key: ProfileKey(profileID, "provision"), status: http.StatusCreated, limit: MaxControl,
		body: ProvisionRequest{ProfileID: profileID, Scope: scopeOf(scope), AllowedOrigins: origins.Strings()},
	}, &a)
	if err != nil {
		return browser.Provisioned{}, err
	}
	if !within(a.ProviderName, 1, 128) || !within(a.ProviderRef, 32, 512) || !within(a.KeyVersion, 1, 128) {
		return browser.Provisioned{}, unreadable(request{})
	}
	return browser.Provisioned{ProviderName: a.ProviderName, ProviderRef: a.ProviderRef, KeyVersion: a.KeyVersion}, nil
}

// Revoke implements browser.Service.
func (c *Client) Revoke(ctx context.Context, scope caller.Scope, profileID, ref string) error {
	return c.profile(ctx, "revoke", scope, profileID, ref)
}

// Delete implements browser.Service.
func (c *Client) Delete(ctx context.Context, scope caller.Scope, profileID, ref string) error {
	return c.profile(ctx, "delete", scope, profileID, ref)
}

func (c *Client) profile(ctx context.Context, operation string, scope caller.Scope, profileID, ref string) error {
	if !ident.Valid(profileID) { // it becomes part of a path
		return fault.New(fault.ProfileUnavailable, "There is no such profile. Nothing was done.")
	}
	return c.call(ctx, request{
		path: "/v1/browser-profiles/" + profileID + ":" + operation, key: ProfileKey(profileID, operation), status: http.StatusNoContent, limit: MaxControl,
		body: ProfileRequest{ProfileID: profileID, Scope: scopeOf(scope), ProviderRef: ref},
	}, nil)
}

// Acquire implements browser.Service.
func (c *Client) Acquire(ctx context.Context, k lease.Key, headed bool, deadline time.Time) (browser.Lease, error) {
	return c.lease(ctx, request{
		path: "/v1/browser-sessions:acquire", key: AcquireKey(k.ProfileID, k.RunID, k.Attempt), status: http.StatusOK, limit: MaxControl,
		body: AcquireRequest{
			ProfileID: k.ProfileID, Scope: scopeOf(k.Scope), ProviderRef: k.ProviderRef, AllowedOrigins: k.Origins.Strings(),
			RunID: k.RunID, Attempt: k.Attempt, DeadlineAt: deadline, Headed: headed, Specified: k.Specified,
		},
	})
}

// Renew implements browser.Service.
func (c *Client) Renew(ctx context.Context, ref string, deadline time.Time) (browser.Lease, error) {
	return c.lease(ctx, request{
		path: "/v1/browser-sessions:renew", key: LeaseKey(ref, "renew"), status: http.StatusOK, limit: MaxControl,
		body: RenewRequest{LeaseRef: ref, DeadlineAt: deadline},
	})
}

func (c *Client) lease(ctx context.Context, r request) (browser.Lease, error) {
	var a LeaseAnswer
	if err := c.call(ctx, r, &a); err != nil {
		return browser.Lease{}, err
	}
	if !within(a.LeaseRef, 32, lease.MaxRef) || a.ExpiresAt.IsZero() || a.Sequence < 1 {
		return browser.Lease{}, unreadable(r)
	}
	return browser.Lease{Ref: a.LeaseRef, ExpiresAt: a.ExpiresAt, Sequence: a.Sequence}, nil
}

// CloseLease implements browser.Service.
func (c *Client) CloseLease(ctx context.Context, ref string) error {
	return c.call(ctx, request{
		path: "/v1/browser-sessions:close", key: LeaseKey(ref, "close"), status: http.StatusNoContent, limit: MaxControl,
		body: LeaseRequest{LeaseRef: ref},
	}, nil)
}

// Do implements browser.Service.
func (c *Client) Do(ctx context.Context, h lease.Held, permit grant.Permit, r action.Request) (observe.Document, error) {
	if !h.Valid() || !permit.For(r.Digest) {
		return observe.Document{}, fault.New(fault.ActionNotAllowed, "The call has no lease or no permit. Nothing was sent.")
	}
	q := request{path: "/v1/browser-sessions:" + strings.TrimPrefix(string(r.Tool), "browser."), status: http.StatusOK, limit: MaxObservation}
	switch r.Tool {
	case action.Navigate:
		q.body = NavigateRequest{LeaseRef: h.Ref(), URL: r.URL}
	case action.Observe:
		q.body = ObserveRequest{LeaseRef: h.Ref(), Query: r.Query}
	case action.Act:
		a, err := json.Marshal(r.Action)
		if err != nil {
			return observe.Document{}, fault.Wrap(fault.Internal, "The action could not be written. Nothing was sent.", err)
		}
		q.act, q.key = true, ActKey(h.Ref(), h.Sequence())
		q.body = ActRequest{LeaseRef: h.Ref(), Sequence: h.Sequence(), Action: a, Constraint: permit.Constraint()}
	default:
		return observe.Document{}, fault.New(fault.ActionNotAllowed, "There is no such operation. Nothing was sent.")
	}
	var d observe.Document
	if err := c.call(ctx, q, &d); err != nil {
		return observe.Document{}, err
	}
	return d, nil
}

// BeginCeremony implements browser.Service.
func (c *Client) BeginCeremony(ctx context.Context, scope caller.Scope, profileID, ref string, login site.URL) (browser.Ceremony, error) {
	var a BeginAnswer
	r := request{
		path: "/v1/browser-authentications:begin", key: CeremonyKey(profileID, "begin"), status: http.StatusCreated, limit: MaxControl,
		body: BeginRequest{ProfileID: profileID, Scope: scopeOf(scope), ProviderRef: ref, LoginURL: login, Mode: "remote"},
	}
	if err := c.call(ctx, r, &a); err != nil {
		return browser.Ceremony{}, err
	}
	if !ident.Valid(a.CeremonyID) || !a.Status.Known() || a.ExpiresAt.IsZero() || !within(a.LaunchURL, 1, 1024) {
		return browser.Ceremony{}, unreadable(r)
	}
	return browser.Ceremony{ID: a.CeremonyID, Status: a.Status, ExpiresAt: a.ExpiresAt, LaunchURL: secret.NewText(a.LaunchURL)}, nil
}

// CeremonyStatus implements browser.Service.
func (c *Client) CeremonyStatus(ctx context.Context, scope caller.Scope, id string) (ceremony.Status, error) {
	var a StatusAnswer
	r := request{
		path: "/v1/browser-authentications:status", status: http.StatusOK, limit: MaxControl,
		body: CeremonyRequest{CeremonyID: id, Scope: scopeOf(scope)},
	}
	if err := c.call(ctx, r, &a); err != nil {
		return "", err
	}
	if !a.Status.Known() {
		return "", unreadable(r)
	}
	return a.Status, nil
}

// CancelCeremony implements browser.Service.
func (c *Client) CancelCeremony(ctx context.Context, scope caller.Scope, id string) error {
	return c.call(ctx, request{
		path: "/v1/browser-authentications:cancel", key: CeremonyKey(id, "cancel"), status: http.StatusNoContent, limit: MaxControl,
		body: CeremonyRequest{CeremonyID: id, Scope: scopeOf(scope)},
	}, nil)
}

func within(s string, low, high int) bool { return len(s) >= low && len(s) <= high }
