package sessionapi

import (
	"encoding/json"
	"net/http"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/remote"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

func (a *api) acquire(w http.ResponseWriter, r *http.Request) error {
	var b remote.AcquireRequest
	if err := read(w, r, &b); err != nil {
		return err
	}
	if err := keyed(r, remote.AcquireKey(b.ProfileID, b.RunID, b.Attempt)); err != nil {
		return err
	}
	origins, err := site.ParseOrigins(b.AllowedOrigins)
	profile := ident.Valid(b.ProfileID) && within(b.ProviderRef, 32, 512)
	ephemeral := b.ProfileID == "" && b.ProviderRef == ""
	if err != nil || !b.Caller().Valid() || !(profile || ephemeral) || !within(b.RunID, 1, 255) || b.Attempt < 1 || b.DeadlineAt.IsZero() {
		return malformed()
	}
	key := lease.Key{Scope: b.Caller(), ProfileID: b.ProfileID, ProviderRef: b.ProviderRef, RunID: b.RunID, Attempt: b.Attempt, Origins: origins, Specified: b.Specified}
	l, err := a.service.Acquire(r.Context(), key, b.Headed, b.DeadlineAt)
	return answerLease(w, l, err)
}

func (a *api) renew(w http.ResponseWriter, r *http.Request) error {
	var b remote.RenewRequest
	if err := read(w, r, &b); err != nil {
		return err
	}
	if err := keyed(r, remote.LeaseKey(b.LeaseRef, "renew")); err != nil {
		return err
	}
	if !within(b.LeaseRef, 32, lease.MaxRef) || b.DeadlineAt.IsZero() {
		return malformed()
	}
	l, err := a.service.Renew(r.Context(), b.LeaseRef, b.DeadlineAt)
	return answerLease(w, l, err)
}

func answerLease(w http.ResponseWriter, l browser.Lease, err error) error {
	if err != nil {
		return err
	}
	httpx.WriteJSON(w, http.StatusOK, remote.LeaseAnswer{LeaseRef: l.Ref, ExpiresAt: l.ExpiresAt, Sequence: l.Sequence})
	return nil
}

func (a *api) closeLease(w http.ResponseWriter, r *http.Request) error {
	var b remote.LeaseRequest
	if err := read(w, r, &b); err != nil {
		return err
	}
	if err := keyed(r, remote.LeaseKey(b.LeaseRef, "close")); err != nil {
		return err
	}
	if !within(b.LeaseRef, 32, lease.MaxRef) {
		return malformed()
	}
	if err := a.service.CloseLease(r.Context(), b.LeaseRef); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *api) navigate(w http.ResponseWriter, r *http.Request) error {
	var b remote.NavigateRequest
	if err := read(w, r, &b); err != nil {
		return err
	}
	arguments, err := json.Marshal(map[string]string{"url": b.URL.String()})
	if err != nil {
		return fault.Wrap(fault.Internal, "The call could not be prepared.", err)
	}
	return a.dispatch(w, r, b.LeaseRef, 0, action.Navigate, arguments, observe.Query{}, nil)
}

func (a *api) observe(w http.ResponseWriter, r *http.Request) error {
	var b remote.ObserveRequest
	if err := read(w, r, &b); err != nil {
		return err
	}
	if err := b.Query.Validate(); err != nil {
		return err
	}
	return a.dispatch(w, r, b.LeaseRef, 0, action.Observe, nil, b.Query, nil)
}

func (a *api) act(w http.ResponseWriter, r *http.Request) error {
	var b remote.ActRequest
	if err := read(w, r, &b); err != nil {
		return err
	}
	if err := keyed(r, remote.ActKey(b.LeaseRef, b.Sequence)); err != nil {
		return err
	}
	if b.Sequence < 1 || b.Constraint != nil && b.Constraint.Validate() != nil {
		return malformed()
	}
	return a.dispatch(w, r, b.LeaseRef, b.Sequence, action.Act, b.Action, observe.Query{}, b.Constraint)
}

func (a *api) dispatch(w http.ResponseWriter, r *http.Request, ref string, sequence int64, tool action.Tool, arguments json.RawMessage, query observe.Query, c *constraint.Constraint) error {
	if !within(ref, 32, lease.MaxRef) {
		return malformed()
	}
	q, err := action.Prepare(tool, arguments)
	if err != nil {
		return err
	}
	q.Query = query
	d, err := a.service.Dispatch(r.Context(), ref, sequence, q, c)
	return answerDocument(w, d, err)
}

// answerDocument writes an observation, cut to fit.
func answerDocument(w http.ResponseWriter, d observe.Document, err error) error {
	if err != nil {
		return err
	}
	body, err := fit(d, remote.MaxObservation)
	if err != nil {
		return fault.Wrap(fault.Internal, "The observation could not be written.", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body) // the client may have gone; there is nobody left to tell
	return nil
}
