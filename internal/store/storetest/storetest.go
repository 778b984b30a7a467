// Package storetest is the contract of store.Store, run against every
// implementation and against broken ones that it must catch (META-03 to
// META-05, PSM-07, PSM-11, REL-01, GATE-07).
package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/device"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// Run checks the contract; open returns an empty store of its own for each
// case, and closes it when the case ends.
func Run(t *testing.T, open func(*testing.T) store.Store) {
	t.Helper()
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Check(open(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Case is one rule of the contract.
type Case struct {
	Name  string
	rules func(*probe)
}

// Check returns what the store does wrong, or nil. The store must be empty.
func (c Case) Check(s store.Store) (err error) {
	defer func() {
		if v := recover(); v != nil {
			broken, ok := v.(violation)
			if !ok {
				panic(v)
			}
			err = broken
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.rules(&probe{ctx: ctx, store: s})
	return nil
}

// Cases lists the rules.
func Cases() []Case {
	return []Case{
		{"profiles are kept whole", profilesKept},
		{"META-03 one live profile per provider reference", providerReferenceUnique},
		{"META-05 PSM-07 profiles change under their generation only", profileGeneration},
		{"PSM-11 a deleted profile is absent", profileDeleted},
		{"ceremonies are kept whole and change under their status only", ceremonies},
		{"sessions are kept whole and end once", sessions},
		{"approvals are kept whole and change under their status only", approvals},
		{"POL-02 one open approval per session and digest", oneOpenApproval},
		{"approvals are listed by session and status", approvalLists},
		{"REL-01 an invocation finishes once and keeps its watermark", invocations},
		{"GATE-07 an approval authorizes one invocation", oneInvocationPerApproval},
		{"UPL-06 images are kept whole, listed, counted and deleted", images},
		{"AIP-59 devices are found by fingerprint and revoked for good", devices},
		{"audit numbers grow by one without gaps", auditNumbers},
		{"audit numbers have no gaps under concurrent writers", auditConcurrent},
		{"PSM-11 another scope's records are absent", isolation},
		{"a record of another scope cannot be written", foreignRecords},
		{"a failed transaction leaves nothing", rollback},
		{"a panic leaves nothing", rollbackOnPanic},
		{"a failure inside cannot be committed over", brokenStaysBroken},
		{"a cancelled transaction leaves nothing", cancelled},
		{"a note is a transaction: seen at once, whole or not at all", notes},
		{"View is a snapshot and refuses writes", views},
		{"lists have limits and are newest first", limits},
		{"scopes that own something are listed", scopes},
	}
}

// violation is how a case ends early.
type violation struct{ string }

func (v violation) Error() string { return v.string }

// The scopes of the cases: the two foreign ones share one half each.
var (
	mine    = caller.Scope{Tenant: "tenant-1", Principal: "ana"}
	foreign = []caller.Scope{{Tenant: "tenant-1", Principal: "ben"}, {Tenant: "tenant-2", Principal: "ana"}}
)

// start is a time with every digit that a store must keep, and one (the last)
// that it need not.
var start = time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC)

func at(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }

type probe struct {
	ctx   context.Context
	store store.Store
}

func (p *probe) violated(format string, args ...any) { panic(violation{fmt.Sprintf(format, args...)}) }

// write runs fn in a transaction of mine that must succeed.
func (p *probe) write(fn func(store.Tx)) { p.in(mine, fn) }

func (p *probe) in(scope caller.Scope, fn func(store.Tx)) {
	p.ok("transaction", p.store.Tx(p.ctx, scope, func(tx store.Tx) error { fn(tx); return nil }))
}

func (p *probe) view(scope caller.Scope, fn func(store.Tx)) {
	p.ok("view", p.store.View(p.ctx, scope, func(tx store.Tx) error { fn(tx); return nil }))
}

func (p *probe) ok(what string, err error) {
	if err != nil {
		p.violated("%s: %v", what, err)
	}
}

func (p *probe) is(what string, err, want error) {
	if !errors.Is(err, want) {
		p.violated("%s: got error %v, want %v", what, err, want)
	}
}

func (p *probe) same(what string, got, want any) {
	if !reflect.DeepEqual(got, want) {
		p.violated("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// got checks what a look-up returned.
func got[T any](p *probe, what string, want T) func(T, error) {
	return func(v T, err error) {
		p.ok(what, err)
		p.same(what, v, want)
	}
}

// absent checks that a look-up found nothing.
func absent[T any](p *probe, what string) func(T, error) {
	return func(v T, err error) {
		p.is(what, err, store.ErrAbsent)
		var zero T
		p.same(what+" beside its error", v, zero)
	}
}

// names checks a list by one name of each record.
func names[T any](p *probe, what string, name func(T) string, want ...string) func([]T, error) {
	return func(list []T, err error) {
		p.ok(what, err)
		var have []string
		for _, v := range list {
			have = append(have, name(v))
		}
		p.same(what, have, want)
	}
}

func origins() site.Origins {
	list, err := site.ParseOrigins([]string{"https://wiki.example.org", "https://login.example.org"})
	if err != nil {
		panic(err)
	}
	return list
}

func newProfile(scope caller.Scope) profile.Profile {
	return profile.Reserve(scope, ident.New(), origins(), start)
}

// bound is a signed-in profile with every field set.
func bound(scope caller.Scope) profile.Profile {
	p, err := newProfile(scope).Bind("hosted", ident.Token(16), "key-1", at(1))
	if err == nil {
		p, err = p.To(profile.Ready, at(2))
	}
	if err != nil {
		panic(err)
	}
	return p.Used(at(3))
}

func newCeremony(p profile.Profile) ceremony.Ceremony {
	return ceremony.Ceremony{Scope: p.Scope, ID: ident.New(), ProfileID: p.ID, Status: ceremony.NeedsUser,
		ExpiresAt: at(5), CreatedAt: start, UpdatedAt: at(1)}
}

// newSession makes sessions of two different contracts.
func newSession(scope caller.Scope, profileID string) run.Session {
	s := run.Session{Scope: scope, ID: ident.New(), ProfileID: profileID, Origins: origins(), Contract: "1.1.0", CreatedAt: start}
	if profileID != "" {
		s.Headed, s.Contract = true, contract.Newest
	}
	return s
}

func newApproval(s run.Session) approval.Approval {
	return approval.Approval{Scope: s.Scope, ID: ident.New(), SessionID: s.ID, ProfileID: s.ProfileID, Generation: 3,
		Tool: action.Act, Digest: ident.Hex(32), Status: approval.Pending, Summary: "Click a button on wiki.example.org/",
		View:      approval.View{View: approval.ViewID, Described: true, Kind: "click", PageTitle: "Τίτλος <b>", ScrollDeltaY: -1},
		CreatedAt: start, ExpiresAt: at(240)}
}

func newInvocation(s run.Session) run.Invocation {
	return run.Invocation{Scope: s.Scope, ID: ident.New(), SessionID: s.ID, Tool: action.Act, Digest: ident.Hex(32),
		Outcome: run.Running, StartedAt: start, EffectSentAt: at(1)}
}

func newImage(s run.Session) artifact.Image {
	return artifact.Image{Scope: s.Scope, ID: ident.New(), SessionID: s.ID, Origin: artifact.Attached, Type: artifact.WebP, Size: 4_321,
		Width: 640, Height: 480, SHA256: ident.Hex(32), CreatedAt: start, ExpiresAt: at(1440)}
}

func newDevice(scope caller.Scope) device.Device {
	return device.Device{Scope: scope, Fingerprint: ident.Hex(16), Name: "laptop", Role: caller.Owner,
		Verifier: []byte(ident.Hex(16)), CreatedAt: start, LastSeenAt: at(1)}
}

func newEntry(scope caller.Scope, subject string) audit.Entry {
	return audit.Entry{Scope: scope, At: start, Kind: audit.CallAuthorized, Device: ident.Hex(16), Subject: subject,
		Tool: "browser.act", Digest: ident.Hex(32), Code: "approval_pending", Detail: "once"}
}
