package ownerapi

import (
	"context"

	"github.com/chaperone-agents/chaperone/internal/app/owner"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/edge/ownerapi/oas"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
)

// private is the Cache-Control of the answers that show something once.
const private = "private, no-store"

// handler serves one request of one caller.
type handler struct {
	*server
	by    caller.Caller               // zero on the open routes
	again func(context.Context) error // authenticates the same request once more
}

var _ oas.StrictServerInterface = (*handler)(nil)

func (h *handler) ListProfiles(ctx context.Context, _ oas.ListProfilesRequestObject) (oas.ListProfilesResponseObject, error) {
	list, err := h.Owner.Profiles(ctx, h.by)
	return oas.ListProfiles200JSONResponse{Profiles: each(list, profileView)}, err
}

func (h *handler) CreateProfile(ctx context.Context, r oas.CreateProfileRequestObject) (oas.CreateProfileResponseObject, error) {
	p, err := h.Owner.CreateProfile(ctx, h.by, r.Params.IdempotencyKey, r.Body.AllowedOrigins)
	return oas.CreateProfile201JSONResponse(profileView(p)), err
}

func (h *handler) GetProfile(ctx context.Context, r oas.GetProfileRequestObject) (oas.GetProfileResponseObject, error) {
	p, err := h.Owner.Profile(ctx, h.by, r.ProfileId)
	return oas.GetProfile200JSONResponse(profileView(p)), err
}

func (h *handler) RevokeProfile(ctx context.Context, r oas.RevokeProfileRequestObject) (oas.RevokeProfileResponseObject, error) {
	p, err := h.Owner.RevokeProfile(ctx, h.by, r.ProfileId)
	return oas.RevokeProfile200JSONResponse(profileView(p)), err
}

func (h *handler) DeleteProfile(ctx context.Context, r oas.DeleteProfileRequestObject) (oas.DeleteProfileResponseObject, error) {
	return oas.DeleteProfile204Response{}, h.Owner.DeleteProfile(ctx, h.by, r.ProfileId)
}

func (h *handler) BeginCeremony(ctx context.Context, r oas.BeginCeremonyRequestObject) (oas.BeginCeremonyResponseObject, error) {
	c, err := h.Owner.BeginCeremony(ctx, h.by, r.ProfileId, value(r.Body.LoginUrl))
	if err != nil {
		return nil, err
	}
	return oas.BeginCeremony201JSONResponse{
		Body: oas.BegunCeremony{
			Id: c.ID, ProfileId: c.ProfileID, Status: oas.CeremonyStatus(c.Status), ExpiresAt: c.ExpiresAt, LaunchUrl: c.LaunchURL.Reveal(),
		},
		Headers: oas.BeginCeremony201ResponseHeaders{CacheControl: private},
	}, nil
}

func (h *handler) GetCeremony(ctx context.Context, r oas.GetCeremonyRequestObject) (oas.GetCeremonyResponseObject, error) {
	c, err := h.Owner.Ceremony(ctx, h.by, r.CeremonyId)
	return oas.GetCeremony200JSONResponse(ceremonyView(c)), err
}

func (h *handler) CancelCeremony(ctx context.Context, r oas.CancelCeremonyRequestObject) (oas.CancelCeremonyResponseObject, error) {
	c, err := h.Owner.CancelCeremony(ctx, h.by, r.CeremonyId)
	return oas.CancelCeremony200JSONResponse(ceremonyView(c)), err
}

func (h *handler) ListApprovals(ctx context.Context, r oas.ListApprovalsRequestObject) (oas.ListApprovalsResponseObject, error) {
	list, err := h.Owner.Approvals(ctx, h.by, approval.Status(value(r.Params.Status)), limit(r.Params.Limit))
	return oas.ListApprovals200JSONResponse{Approvals: each(list, approvalView)}, err
}

func (h *handler) GetApproval(ctx context.Context, r oas.GetApprovalRequestObject) (oas.GetApprovalResponseObject, error) {
	a, err := h.Owner.Approval(ctx, h.by, r.ApprovalId)
	return oas.GetApproval200JSONResponse(approvalView(a)), err
}

func (h *handler) ResolveApproval(ctx context.Context, r oas.ResolveApprovalRequestObject) (oas.ResolveApprovalResponseObject, error) {
	a, err := h.Owner.Resolve(ctx, h.by, r.ApprovalId, approval.Decision(r.Body.Decision), value(r.Body.Reason))
	return oas.ResolveApproval200JSONResponse(approvalView(a)), err
}

func (h *handler) ListSessions(ctx context.Context, _ oas.ListSessionsRequestObject) (oas.ListSessionsResponseObject, error) {
	list, err := h.Owner.Sessions(ctx, h.by)
	return oas.ListSessions200JSONResponse{Sessions: each(list, sessionView)}, err
}

func (h *handler) CreateSession(ctx context.Context, r oas.CreateSessionRequestObject) (oas.CreateSessionResponseObject, error) {
	s, credential, err := h.Owner.CreateSession(ctx, h.by, owner.NewSession{
		Name: value(r.Body.Name), ProfileID: value(r.Body.ProfileId), Origins: value(r.Body.AllowedOrigins), Headed: value(r.Body.Headed),
	})
	if err != nil {
		return nil, err
	}
	return oas.CreateSession201JSONResponse{
		Body:    oas.CreatedSession{SessionId: s.ID, Credential: credential.Reveal()},
		Headers: oas.CreateSession201ResponseHeaders{CacheControl: private},
	}, nil
}

func (h *handler) EndSession(ctx context.Context, r oas.EndSessionRequestObject) (oas.EndSessionResponseObject, error) {
	return oas.EndSession204Response{}, h.Owner.EndSession(ctx, h.by, r.SessionId)
}

func (h *handler) ListDevices(ctx context.Context, _ oas.ListDevicesRequestObject) (oas.ListDevicesResponseObject, error) {
	list, err := h.Owner.PairedDevices(ctx, h.by)
	return oas.ListDevices200JSONResponse{Devices: each(list, h.deviceView)}, err
}

func (h *handler) RevokeDevice(ctx context.Context, r oas.RevokeDeviceRequestObject) (oas.RevokeDeviceResponseObject, error) {
	return oas.RevokeDevice204Response{}, h.Owner.RevokeDevice(ctx, h.by, r.Fingerprint)
}

func (h *handler) CreateConsoleLogin(_ context.Context, _ oas.CreateConsoleLoginRequestObject) (oas.CreateConsoleLoginResponseObject, error) {
	code := h.Access.NewLoginCode(h.by.Scope).Reveal()
	var answer oas.CreateConsoleLogin201JSONResponse
	answer.Body.Code, answer.Body.LoginUrl = code, LoginURL(h.Console, code)
	answer.Headers.CacheControl = private
	return answer, nil
}

// LoginURL is the console's address with a one-time code in its fragment,
// which no server and no log sees.
func LoginURL(console, code string) string { return console + "/#code=" + code }

func (h *handler) BeginConsoleSession(ctx context.Context, r oas.BeginConsoleSessionRequestObject) (oas.BeginConsoleSessionResponseObject, error) {
	credential, err := h.Access.Login(ctx, r.Body.Code)
	if err != nil {
		return nil, err
	}
	cookie, key := split(credential)
	var answer oas.BeginConsoleSession201JSONResponse
	answer.Body.PageKey, answer.Headers.SetCookie = key, h.cookie(cookie)
	return answer, nil
}

func (h *handler) EndConsoleSession(ctx context.Context, _ oas.EndConsoleSessionRequestObject) (oas.EndConsoleSessionResponseObject, error) {
	if err := h.Owner.RevokeDevice(ctx, h.by, h.by.Device); err != nil {
		return nil, err
	}
	return oas.EndConsoleSession204Response{Headers: oas.EndConsoleSession204ResponseHeaders{SetCookie: h.cookie("")}}, nil
}

func (h *handler) ListAudit(ctx context.Context, r oas.ListAuditRequestObject) (oas.ListAuditResponseObject, error) {
	after := int64(-1)
	if r.Params.After != nil {
		after = *r.Params.After
	}
	list, err := h.Owner.Audit(ctx, h.by, after, limit(r.Params.Limit))
	return oas.ListAudit200JSONResponse{Entries: each(list, auditView)}, err
}

func (h *handler) ListDiagnostics(_ context.Context, r oas.ListDiagnosticsRequestObject) (oas.ListDiagnosticsResponseObject, error) {
	calls := h.Calls.Diagnostics(h.by.Scope)
	return oas.ListDiagnostics200JSONResponse{Calls: each(calls[max(0, len(calls)-limit(r.Params.Limit)):], callView)}, nil
}

func (h *handler) Stop(ctx context.Context, _ oas.StopRequestObject) (oas.StopResponseObject, error) {
	s, err := h.Owner.Stop(ctx, h.by)
	return oas.Stop200JSONResponse{SessionsEnded: s.Sessions, ApprovalsCancelled: s.Approvals}, err
}

func (h *handler) Live(context.Context, oas.LiveRequestObject) (oas.LiveResponseObject, error) {
	return oas.Live204Response{}, nil
}

func (h *handler) Ready(ctx context.Context, _ oas.ReadyRequestObject) (oas.ReadyResponseObject, error) {
	if err := h.Owner.Ready(ctx); err != nil {
		return nil, fault.Wrap(fault.Internal, "The database does not answer.", err).Retry()
	}
	return oas.Ready204Response{}, nil
}
