package ownerapi

import (
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/app/owner"
	"github.com/chaperone-agents/chaperone/internal/edge/ownerapi/oas"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/device"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
)

// The views name each member they show; provider references, key versions,
// generations, verifiers and capabilities are in none of them (API-01, CER-02).

func profileView(p owner.Profile) oas.Profile {
	v := oas.Profile{
		Id: p.ID, AllowedOrigins: p.Origins.Strings(), Status: oas.ProfileStatus(p.Status),
		CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt, LastUsedAt: when(p.LastUsedAt),
	}
	if p.Open != nil {
		c := ceremonyView(*p.Open)
		v.OpenCeremony = &c
	}
	return v
}

func ceremonyView(c ceremony.Ceremony) oas.Ceremony {
	return oas.Ceremony{Id: c.ID, ProfileId: c.ProfileID, Status: oas.CeremonyStatus(c.Status), ExpiresAt: c.ExpiresAt}
}

func approvalView(a approval.Approval) oas.Approval {
	return oas.Approval{
		Id: a.ID, SessionId: a.SessionID, ProfileId: some(a.ProfileID), Tool: string(a.Tool), Status: oas.ApprovalStatus(a.Status),
		Summary: a.Summary, View: actView(a.View), Reason: some(a.Reason),
		CreatedAt: a.CreatedAt, ExpiresAt: a.ExpiresAt, DecidedAt: when(a.DecidedAt),
	}
}

func actView(v approval.View) oas.ActView {
	return oas.ActView{
		View: v.View, Described: v.Described, Kind: v.Kind, PageOrigin: some(v.PageOrigin), PagePath: some(v.PagePath),
		PageTitle: some(v.PageTitle), ElementRole: some(v.ElementRole), ElementName: some(v.ElementName),
		ElementText: some(v.ElementText), ElementContext: some(v.ElementContext), Field: some(v.Field), Text: some(v.Text),
		Option: some(v.Option), Key: some(v.Key), ScrollDeltaY: some(v.ScrollDeltaY), Redacted: some(v.Redacted), Digest: some(v.Digest),
		Checked: some(v.Checked), Consequence: some(oas.ActViewConsequence(v.Consequence)), Refused: some(v.Refused), Image: imageOf(v.Image),
	}
}

func imageOf(i *approval.Image) *oas.ImageView {
	if i == nil {
		return nil
	}
	return &oas.ImageView{Id: i.ID, Type: i.Type, Size: i.Size, Width: i.Width, Height: i.Height, Sha256: i.SHA256}
}

func imageView(i artifact.Image) oas.Image {
	return oas.Image{
		Id: i.ID, SessionId: i.SessionID, Type: oas.ImageType(i.Type), Size: i.Size, Width: i.Width, Height: i.Height, Sha256: i.SHA256,
		CreatedAt: i.CreatedAt, ExpiresAt: i.ExpiresAt,
	}
}

func sessionView(s run.Session) oas.Session {
	return oas.Session{Id: s.ID, ProfileId: some(s.ProfileID), AllowedOrigins: s.Origins.Strings(), Headed: s.Headed, CreatedAt: s.CreatedAt}
}

func (h *handler) deviceView(d device.Device) oas.Device {
	return oas.Device{
		Fingerprint: d.Fingerprint, Name: d.Name, Role: oas.DeviceRole(d.Role), SessionId: some(d.SessionID), CreatedAt: d.CreatedAt,
		LastSeenAt: when(d.LastSeenAt), RevokedAt: when(d.RevokedAt), Current: d.Fingerprint == h.by.Device,
	}
}

func auditView(e audit.Entry) oas.AuditEntry {
	return oas.AuditEntry{
		Number: e.Number, At: e.At, Kind: string(e.Kind), Device: some(e.Device), Subject: some(e.Subject), Tool: some(e.Tool),
		Digest: some(e.Digest), Code: some(e.Code), Detail: some(e.Detail),
	}
}

func callView(d broker.Diagnostics) oas.CallDiagnostics {
	v := oas.CallDiagnostics{
		Version: d.Version, Tool: some(oas.CallDiagnosticsTool(d.Tool)), EndedAt: d.EndedAt, ElapsedMs: d.ElapsedMS, Truncated: d.Truncated, Phases: each(d.Phases, phaseView),
	}
	v.Outcome, v.Failure = outcomeView(d.Category)
	return v
}

func phaseView(p broker.Span) oas.PhaseDiagnostics {
	v := oas.PhaseDiagnostics{
		Phase: oas.PhaseDiagnosticsPhase(p.Phase.String()), Placement: oas.PhaseDiagnosticsPlacement(p.Placement.String()), ElapsedMs: p.ElapsedMS,
	}
	v.Outcome, v.Failure = outcomeView(p.Category)
	return v
}

func outcomeView(c broker.Category) (oas.PhaseOutcome, *oas.FailureCategory) {
	if c == broker.NoFailure {
		return oas.Succeeded, nil
	}
	return oas.Failed, some(oas.FailureCategory(c.String()))
}

// each maps a list; an empty list stays a list in JSON.
func each[T, V any](list []T, view func(T) V) []V {
	out := make([]V, 0, len(list))
	for _, x := range list {
		out = append(out, view(x))
	}
	return out
}

// some is nil for the zero value, which the contract leaves out.
func some[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// value is the zero value for an absent member.
func value[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

func limit(p *int) int {
	if p == nil {
		return 50
	}
	return *p
}
