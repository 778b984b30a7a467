package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/device"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
)

func subject(e audit.Entry) string { return fmt.Sprint(e.Number, " ", e.Subject) }

// append writes entries whose numbers begin at first.
func (p *probe) append(scope caller.Scope, first int, subjects ...string) {
	p.in(scope, func(tx store.Tx) {
		for i, s := range subjects {
			want := newEntry(scope, s)
			e, err := tx.Append(want)
			p.ok("append", err)
			want.Number = int64(first + i)
			p.same("appended entry", e, want)
		}
	})
}

func auditNumbers(p *probe) {
	p.append(mine, 1, "a", "b")
	p.append(foreign[0], 1, "x")
	failed := errors.New("after an append")
	p.is("transaction", p.store.Tx(p.ctx, mine, func(tx store.Tx) error {
		_, err := tx.Append(newEntry(mine, "never"))
		p.ok("append", err)
		return failed
	}), failed)
	p.append(mine, 3, "c", "d")
	p.view(mine, func(tx store.Tx) {
		names(p, "from the start", subject, "1 a", "2 b", "3 c", "4 d")(tx.Audit(0, 10))
		names(p, "after the second", subject, "3 c")(tx.Audit(2, 1))
		names(p, "after the last", subject)(tx.Audit(4, 10))
		names(p, "tail", subject, "3 c", "4 d")(tx.AuditTail(2))
		names(p, "whole tail", subject, "1 a", "2 b", "3 c", "4 d")(tx.AuditTail(10))
	})
	p.view(foreign[0], func(tx store.Tx) { names(p, "another scope's", subject, "1 x")(tx.Audit(0, 10)) })
}

func auditConcurrent(p *probe) {
	const writers, each = 4, 10
	var all sync.WaitGroup
	errs := make(chan error, writers*each)
	for w := range writers {
		all.Go(func() {
			for range each {
				errs <- p.store.Tx(p.ctx, mine, func(tx store.Tx) error {
					_, err := tx.Append(newEntry(mine, fmt.Sprint(w)))
					return err
				})
			}
		})
	}
	all.Wait()
	for range writers * each {
		p.ok("append", <-errs)
	}
	p.view(mine, func(tx store.Tx) {
		entries, err := tx.Audit(0, 200)
		p.ok("audit", err)
		p.same("entries", len(entries), writers*each)
		for i, e := range entries {
			p.same("number", e.Number, int64(i+1))
		}
	})
}

// everything is one record of each kind in one scope.
type everything struct {
	profile    profile.Profile
	ceremony   ceremony.Ceremony
	session    run.Session
	approval   approval.Approval
	invocation run.Invocation
	image      artifact.Image
	device     device.Device
}

func newEverything(scope caller.Scope) everything {
	e := everything{profile: bound(scope), device: newDevice(scope)}
	e.ceremony, e.session = newCeremony(e.profile), newSession(scope, e.profile.ID)
	e.approval, e.invocation, e.image = newApproval(e.session), newInvocation(e.session), newImage(e.session)
	return e
}

func (e everything) insert(p *probe, tx store.Tx) {
	p.ok("insert profile", tx.InsertProfile(e.profile))
	p.ok("insert ceremony", tx.InsertCeremony(e.ceremony))
	p.ok("insert session", tx.InsertSession(e.session))
	p.ok("insert approval", tx.InsertApproval(e.approval))
	p.ok("insert invocation", tx.InsertInvocation(e.invocation))
	p.ok("insert image", tx.InsertImage(e.image))
	p.ok("insert device", tx.InsertDevice(e.device))
	_, err := tx.Append(newEntry(e.profile.Scope, "subject"))
	p.ok("append", err)
}

// present checks that all of it can be found, unchanged, in its own scope.
func (e everything) present(p *probe) {
	p.view(e.profile.Scope, func(tx store.Tx) {
		got(p, "profile", e.profile)(tx.Profile(e.profile.ID))
		got(p, "ceremony", e.ceremony)(tx.Ceremony(e.ceremony.ID))
		got(p, "session", e.session)(tx.Session(e.session.ID))
		got(p, "approval", e.approval)(tx.Approval(e.approval.ID))
		got(p, "invocations", []run.Invocation{e.invocation})(tx.Invocations(e.session.ID, 10))
		got(p, "image", e.image)(tx.Image(e.image.ID))
		got(p, "devices", []device.Device{e.device})(tx.Devices(false, 10))
	})
}

// absent checks that none of it can be found in the scope.
func (e everything) absent(p *probe, scope caller.Scope) {
	p.view(scope, func(tx store.Tx) {
		absent[profile.Profile](p, "profile")(tx.Profile(e.profile.ID))
		absent[ceremony.Ceremony](p, "ceremony")(tx.Ceremony(e.ceremony.ID))
		absent[ceremony.Ceremony](p, "latest ceremony")(tx.LatestCeremony(e.profile.ID))
		absent[run.Session](p, "session")(tx.Session(e.session.ID))
		absent[approval.Approval](p, "approval")(tx.Approval(e.approval.ID))
		absent[approval.Approval](p, "open approval")(tx.OpenApproval(e.session.ID, e.approval.Digest))
		absent[approval.Approval](p, "last approval")(tx.LastApproval(e.session.ID, e.approval.Digest))
		got[[]profile.Profile](p, "profiles", nil)(tx.Profiles(10))
		got[[]run.Session](p, "sessions", nil)(tx.Sessions("", false, 10))
		got[[]run.Session](p, "live sessions", nil)(tx.Sessions(e.profile.ID, true, 10))
		got[[]approval.Approval](p, "approvals", nil)(tx.Approvals("", 10))
		got[[]approval.Approval](p, "pending approvals", nil)(tx.Approvals("", 10, approval.Pending))
		got[[]approval.Approval](p, "approvals of the session", nil)(tx.Approvals(e.session.ID, 10))
		got[[]run.Invocation](p, "invocations", nil)(tx.Invocations(e.session.ID, 10))
		got[[]run.Invocation](p, "running invocations", nil)(tx.RunningInvocations(10))
		absent[artifact.Image](p, "image")(tx.Image(e.image.ID))
		got[[]artifact.Image](p, "images", nil)(tx.Images("", 10))
		got[[]artifact.Image](p, "images of the session", nil)(tx.Images(e.session.ID, 10))
		got(p, "use by images", artifact.Use{})(tx.ImageUse())
		got[[]device.Device](p, "devices", nil)(tx.Devices(false, 10))
		got[[]device.Device](p, "live devices", nil)(tx.Devices(true, 10))
		got[[]audit.Entry](p, "audit", nil)(tx.Audit(0, 10))
		got[[]audit.Entry](p, "audit tail", nil)(tx.AuditTail(10))
	})
}

func isolation(p *probe) {
	e := newEverything(mine)
	p.write(func(tx store.Tx) { e.insert(p, tx) })
	for _, scope := range foreign {
		e.absent(p, scope)
		p.in(scope, func(tx store.Tx) {
			theirs := e.profile
			theirs.Scope = scope
			p.is("update profile", tx.UpdateProfile(theirs, theirs.Generation), store.ErrAbsent)
			p.is("delete profile", tx.DeleteProfile(e.profile.ID, e.profile.Generation), store.ErrAbsent)
			c := e.ceremony
			c.Scope, c.Status = scope, ceremony.Ready
			p.is("update ceremony", tx.UpdateCeremony(c, e.ceremony.Status), store.ErrAbsent)
			p.is("end session", tx.EndSession(e.session.ID, at(1)), store.ErrAbsent)
			a := e.approval
			a.Scope, a.Status, a.DecidedBy, a.DecidedAt = scope, approval.Approved, ident.Hex(16), at(1)
			p.is("update approval", tx.UpdateApproval(a, approval.Pending), store.ErrAbsent)
			i := finished(e.invocation)
			i.Scope = scope
			p.is("finish invocation", tx.FinishInvocation(i), store.ErrAbsent)
			p.is("delete image", tx.DeleteImage(e.image.ID), store.ErrAbsent)
			p.is("revoke device", tx.RevokeDevice(e.device.Fingerprint, at(1)), store.ErrAbsent)
			p.is("see device", tx.SeenDevice(e.device.Fingerprint, at(1)), store.ErrAbsent)
		})
		e.present(p)

		// Nor can a record be hung on another scope's parent.
		c, a, i, m := e.ceremony, newApproval(e.session), newInvocation(e.session), newImage(e.session)
		c.ID, c.Scope, a.Scope, i.Scope, m.Scope = ident.New(), scope, scope, scope, scope
		for what, insert := range map[string]func(store.Tx) error{
			"ceremony":   func(tx store.Tx) error { return tx.InsertCeremony(c) },
			"approval":   func(tx store.Tx) error { return tx.InsertApproval(a) },
			"invocation": func(tx store.Tx) error { return tx.InsertInvocation(i) },
			"image":      func(tx store.Tx) error { return tx.InsertImage(m) },
		} {
			p.is(what+" of another scope's parent", p.store.Tx(p.ctx, scope, insert), store.ErrAbsent)
		}

		// The same id in this scope is another record.
		theirs := newProfile(scope)
		theirs.ID = e.profile.ID
		p.in(scope, func(tx store.Tx) {
			p.ok("the same id in another scope", tx.InsertProfile(theirs))
			p.ok("its removal", tx.DeleteProfile(theirs.ID, theirs.Generation))
		})
		e.present(p)
	}
}

func foreignRecords(p *probe) {
	e := newEverything(foreign[0])
	p.in(foreign[0], func(tx store.Tx) { e.insert(p, tx) })
	p.write(func(tx store.Tx) {
		p.is("insert profile", tx.InsertProfile(newProfile(foreign[0])), store.ErrAbsent)
		p.is("update profile", tx.UpdateProfile(e.profile, e.profile.Generation), store.ErrAbsent)
		p.is("insert ceremony", tx.InsertCeremony(newCeremony(e.profile)), store.ErrAbsent)
		p.is("update ceremony", tx.UpdateCeremony(e.ceremony, e.ceremony.Status), store.ErrAbsent)
		p.is("insert session", tx.InsertSession(newSession(foreign[0], "")), store.ErrAbsent)
		p.is("insert approval", tx.InsertApproval(newApproval(e.session)), store.ErrAbsent)
		p.is("update approval", tx.UpdateApproval(e.approval, e.approval.Status), store.ErrAbsent)
		p.is("insert invocation", tx.InsertInvocation(newInvocation(e.session)), store.ErrAbsent)
		p.is("finish invocation", tx.FinishInvocation(finished(e.invocation)), store.ErrAbsent)
		p.is("insert image", tx.InsertImage(newImage(e.session)), store.ErrAbsent)
		p.is("insert device", tx.InsertDevice(newDevice(foreign[0])), store.ErrAbsent)
		_, err := tx.Append(newEntry(foreign[0], "x"))
		p.is("append", err, store.ErrAbsent)
	})
	e.present(p)
	e.absent(p, mine)
}

func rollback(p *probe) {
	failed := errors.New("at the end")
	e := newEverything(mine)
	p.is("transaction", p.store.Tx(p.ctx, mine, func(tx store.Tx) error {
		e.insert(p, tx)
		got(p, "own write", e.profile)(tx.Profile(e.profile.ID))
		return failed
	}), failed)
	e.absent(p, mine)
	p.write(func(tx store.Tx) { e.insert(p, tx) })
	e.present(p)
}

// notes: but for the wait, Note is Tx, and the two are serialised together.
func notes(p *probe) {
	note := func(ctx context.Context, e audit.Entry, after error) error {
		return p.store.Note(ctx, mine, func(tx store.Tx) error {
			_, err := tx.Append(e)
			return errors.Join(err, after)
		})
	}
	p.append(mine, 1, "a")
	p.ok("note", note(p.ctx, newEntry(mine, "b"), nil))
	p.view(mine, func(tx store.Tx) { names(p, "at once", subject, "1 a", "2 b")(tx.Audit(0, 10)) })
	failed := errors.New("at the end")
	p.is("note", note(p.ctx, newEntry(mine, "never"), failed), failed)
	p.append(mine, 3, "c")
	ended, cancel := context.WithCancel(p.ctx)
	cancel()
	p.is("note after the end", note(ended, newEntry(mine, "too late"), nil), context.Canceled)

	const writers, each = 4, 5
	var all sync.WaitGroup
	errs := make(chan error, 2*writers*each)
	for range writers {
		all.Go(func() {
			for range each {
				errs <- note(p.ctx, newEntry(mine, "n"), nil)
				errs <- p.store.Tx(p.ctx, mine, func(tx store.Tx) error { _, err := tx.Append(newEntry(mine, "t")); return err })
			}
		})
	}
	all.Wait()
	for range 2 * writers * each {
		p.ok("append", <-errs)
	}
	p.view(mine, func(tx store.Tx) {
		entries, err := tx.Audit(0, 200)
		p.ok("audit", err)
		p.same("entries", len(entries), 3+2*writers*each)
		for i, e := range entries {
			p.same("number", e.Number, int64(i+1))
		}
	})
}

func rollbackOnPanic(p *probe) {
	e := newEverything(mine)
	var recovered any
	func() {
		defer func() { recovered = recover() }()
		_ = p.store.Tx(p.ctx, mine, func(tx store.Tx) error {
			e.insert(p, tx)
			panic("in the middle")
		})
	}()
	p.same("the panic", recovered, "in the middle")
	e.absent(p, mine)
	p.write(func(tx store.Tx) { e.insert(p, tx) }) // and the store still works
	e.present(p)
}

func brokenStaysBroken(p *probe) {
	kept, bad := newProfile(mine), newProfile(mine)
	bad.Status = "unheard of"
	err := p.store.Tx(p.ctx, mine, func(tx store.Tx) error {
		p.ok("insert", tx.InsertProfile(kept))
		if tx.InsertProfile(bad) == nil {
			p.violated("META-04: an unknown status was stored")
		}
		if tx.InsertProfile(newProfile(mine)) == nil {
			p.violated("a write after a failure was accepted")
		}
		return nil
	})
	if err == nil {
		p.violated("a transaction with a failed statement was committed")
	}
	p.view(mine, func(tx store.Tx) { got[[]profile.Profile](p, "profiles", nil)(tx.Profiles(10)) })
}

func cancelled(p *probe) {
	ctx, cancel := context.WithCancel(p.ctx)
	kept := newProfile(mine)
	err := p.store.Tx(ctx, mine, func(tx store.Tx) error {
		p.ok("insert", tx.InsertProfile(kept))
		cancel()
		p.is("write after the end", tx.InsertProfile(newProfile(mine)), context.Canceled)
		return nil
	})
	p.is("transaction", err, context.Canceled)
	p.is("transaction after it", p.store.Tx(ctx, mine, func(store.Tx) error { return nil }), context.Canceled)
	p.view(mine, func(tx store.Tx) { absent[profile.Profile](p, "profile")(tx.Profile(kept.ID)) })
	p.write(func(tx store.Tx) { p.ok("insert", tx.InsertProfile(kept)) })
}

func views(p *probe) {
	first, second := newProfile(mine), newProfile(mine)
	p.write(func(tx store.Tx) { p.ok("insert", tx.InsertProfile(first)) })
	p.view(mine, func(tx store.Tx) {
		got(p, "before", []profile.Profile{first})(tx.Profiles(10))
		p.write(func(tx store.Tx) { p.ok("insert meanwhile", tx.InsertProfile(second)) })
		got(p, "the same snapshot", []profile.Profile{first})(tx.Profiles(10))
	})
	p.view(mine, func(tx store.Tx) { got(p, "after", []profile.Profile{second, first})(tx.Profiles(10)) })

	third := newProfile(mine)
	err := p.store.View(p.ctx, mine, func(tx store.Tx) error { return tx.InsertProfile(third) })
	if err == nil {
		p.violated("a write inside View was accepted")
	}
	p.view(mine, func(tx store.Tx) { absent[profile.Profile](p, "profile written in a view")(tx.Profile(third.ID)) })

	for _, bad := range []caller.Scope{{}, {Tenant: "t"}, {Principal: "p"}} {
		if p.store.View(p.ctx, bad, func(store.Tx) error { return nil }) == nil || p.store.Tx(p.ctx, bad, func(store.Tx) error { return nil }) == nil {
			p.violated("the scope %+v was accepted", bad)
		}
	}
}

func limits(p *probe) {
	var newest []string
	p.write(func(tx store.Tx) {
		for range 5 {
			s := newSession(mine, "")
			p.ok("insert", tx.InsertSession(s))
			newest = append([]string{s.ID}, newest...)
		}
		names(p, "three sessions", func(s run.Session) string { return s.ID }, newest[:3]...)(tx.Sessions("", true, 3))
	})
	for _, n := range []int{-1, 0, 201} {
		for what, list := range map[string]func(store.Tx) error{
			"profiles":    func(tx store.Tx) error { _, err := tx.Profiles(n); return err },
			"sessions":    func(tx store.Tx) error { _, err := tx.Sessions("", false, n); return err },
			"approvals":   func(tx store.Tx) error { _, err := tx.Approvals("", n); return err },
			"running":     func(tx store.Tx) error { _, err := tx.RunningInvocations(n); return err },
			"invocations": func(tx store.Tx) error { _, err := tx.Invocations(ident.New(), n); return err },
			"images":      func(tx store.Tx) error { _, err := tx.Images("", n); return err },
			"devices":     func(tx store.Tx) error { _, err := tx.Devices(false, n); return err },
			"audit":       func(tx store.Tx) error { _, err := tx.Audit(0, n); return err },
			"tail":        func(tx store.Tx) error { _, err := tx.AuditTail(n); return err },
		} {
			if p.store.View(p.ctx, mine, list) == nil {
				p.violated("a list of %s with limit %d was answered", what, n)
			}
		}
	}
}

func scopes(p *probe) {
	list, err := p.store.Scopes(p.ctx)
	p.ok("scopes", err)
	p.same("scopes of an empty store", len(list), 0)
	p.write(func(tx store.Tx) { p.ok("insert", tx.InsertProfile(newProfile(mine))) })
	p.in(foreign[0], func(tx store.Tx) { p.ok("insert", tx.InsertSession(newSession(foreign[0], ""))) })
	p.in(foreign[1], func(tx store.Tx) { p.ok("insert", tx.InsertDevice(newDevice(foreign[1]))) })
	list, err = p.store.Scopes(p.ctx)
	p.ok("scopes", err)
	seen := map[caller.Scope]int{}
	for _, s := range list {
		seen[s]++
	}
	p.same("scopes", seen, map[caller.Scope]int{mine: 1, foreign[0]: 1, foreign[1]: 1})
}
