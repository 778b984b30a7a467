package sessionapi

import (
	"net/http"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/remote"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
)

func (a *api) provision(w http.ResponseWriter, r *http.Request) error {
	var b remote.ProvisionRequest
	if err := read(w, r, &b); err != nil {
		return err
	}
	if err := keyed(r, remote.ProfileKey(b.ProfileID, "provision")); err != nil {
		return err
	}
	origins, err := site.ParseOrigins(b.AllowedOrigins)
	if err != nil || !ident.Valid(b.ProfileID) || !b.Caller().Valid() {
		return malformed()
	}
	p, err := a.service.Provision(r.Context(), b.Caller(), b.ProfileID, origins)
	if err != nil {
		return err
	}
	httpx.WriteJSON(w, http.StatusCreated, remote.ProvisionAnswer{ProviderName: p.ProviderName, ProviderRef: p.ProviderRef, KeyVersion: p.KeyVersion})
	return nil
}

// profile is the route of {id}:revoke and {id}:delete, or nil.
func (a *api) profile(rest string) route {
	id, operation, _ := strings.Cut(rest, ":")
	run := a.service.Revoke
	switch operation {
	case "revoke":
	case "delete":
		run = a.service.Delete
	default:
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		var b remote.ProfileRequest
		if err := read(w, r, &b); err != nil {
			return err
		}
		if err := keyed(r, remote.ProfileKey(id, operation)); err != nil {
			return err
		}
		if b.ProfileID != id || !ident.Valid(id) || !b.Caller().Valid() || !within(b.ProviderRef, 32, 512) {
			return malformed()
		}
		if err := run(r.Context(), b.Caller(), id, b.ProviderRef); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

func (a *api) begin(w http.ResponseWriter, r *http.Request) error {
	var b remote.BeginRequest
	if err := read(w, r, &b); err != nil {
		return err
	}
	if err := keyed(r, remote.CeremonyKey(b.ProfileID, "begin")); err != nil {
		return err
	}
	if !ident.Valid(b.ProfileID) || !b.Caller().Valid() || !within(b.ProviderRef, 32, 512) || b.LoginURL.Host() == "" || b.Mode != "remote" {
		return malformed()
	}
	c, err := a.service.BeginCeremony(r.Context(), b.Caller(), b.ProfileID, b.ProviderRef, b.LoginURL)
	if err != nil {
		return err
	}
	httpx.WriteJSON(w, http.StatusCreated, remote.BeginAnswer{CeremonyID: c.ID, Status: c.Status, ExpiresAt: c.ExpiresAt, LaunchURL: reveal(c.LaunchURL)})
	return nil
}

// reveal is the one place where a launch URL leaves (CER-02).
func reveal(launch secret.Text) string { return launch.Reveal() }

func (a *api) status(w http.ResponseWriter, r *http.Request) error {
	var b remote.CeremonyRequest
	if err := read(w, r, &b); err != nil {
		return err
	}
	if !ident.Valid(b.CeremonyID) || !b.Caller().Valid() {
		return malformed()
	}
	status, err := a.service.CeremonyStatus(r.Context(), b.Caller(), b.CeremonyID)
	if err != nil {
		return err
	}
	httpx.WriteJSON(w, http.StatusOK, remote.StatusAnswer{Status: status})
	return nil
}

func (a *api) cancel(w http.ResponseWriter, r *http.Request) error {
	var b remote.CeremonyRequest
	if err := read(w, r, &b); err != nil {
		return err
	}
	if err := keyed(r, remote.CeremonyKey(b.CeremonyID, "cancel")); err != nil {
		return err
	}
	if !ident.Valid(b.CeremonyID) || !b.Caller().Valid() {
		return malformed()
	}
	if err := a.service.CancelCeremony(r.Context(), b.Caller(), b.CeremonyID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
