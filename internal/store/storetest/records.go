package storetest

import (
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/device"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
)

func profilesKept(p *probe) {
	reserved, ready := newProfile(mine), bound(mine)
	p.write(func(tx store.Tx) {
		p.ok("insert", tx.InsertProfile(reserved))
		p.ok("insert", tx.InsertProfile(ready))
		p.is("insert of the same id", tx.InsertProfile(reserved), store.ErrExists)
	})
	p.view(mine, func(tx store.Tx) {
		got(p, "reserved profile", reserved)(tx.Profile(reserved.ID))
		got(p, "ready profile", ready)(tx.Profile(ready.ID))
		absent[profile.Profile](p, "unknown profile")(tx.Profile(ident.New()))
		got(p, "profiles", []profile.Profile{ready, reserved})(tx.Profiles(10))
	})
}

func providerReferenceUnique(p *probe) {
	first, second, third := bound(mine), bound(mine), bound(foreign[0])
	second.ProviderRef, third.ProviderRef = first.ProviderRef, first.ProviderRef
	p.write(func(tx store.Tx) {
		p.ok("insert", tx.InsertProfile(first))
		p.is("insert with a live reference", tx.InsertProfile(second), store.ErrExists)
	})
	p.in(foreign[0], func(tx store.Tx) {
		p.is("insert with another owner's live reference", tx.InsertProfile(third), store.ErrExists)
	})

	reserved := newProfile(mine)
	p.write(func(tx store.Tx) { p.ok("reserve", tx.InsertProfile(reserved)) })
	taken, err := reserved.Bind("hosted", first.ProviderRef, "key-1", at(4))
	p.ok("bind", err)
	err = p.store.Tx(p.ctx, mine, func(tx store.Tx) error { return tx.UpdateProfile(taken, reserved.Generation) })
	p.is("bind to a live reference", err, store.ErrExists)
	p.view(mine, func(tx store.Tx) { got(p, "reservation", reserved)(tx.Profile(reserved.ID)) })

	revoked, err := first.To(profile.Revoked, at(4))
	p.ok("revoke", err)
	p.write(func(tx store.Tx) {
		p.ok("update", tx.UpdateProfile(revoked, first.Generation))
		p.ok("insert after the other was revoked", tx.InsertProfile(second))
	})
}

func profileGeneration(p *probe) {
	was := bound(mine)
	p.write(func(tx store.Tx) { p.ok("insert", tx.InsertProfile(was)) })
	next, err := was.To(profile.NeedsUser, at(5))
	p.ok("transition", err)
	next.KeyVersion = "key-2"
	p.write(func(tx store.Tx) {
		p.is("update under a later generation", tx.UpdateProfile(next, was.Generation+1), store.ErrStale)
		p.is("update under an earlier generation", tx.UpdateProfile(next, was.Generation-1), store.ErrStale)
		got(p, "after stale updates", was)(tx.Profile(was.ID))
		p.ok("update", tx.UpdateProfile(next, was.Generation))
		p.is("the same update again", tx.UpdateProfile(next, was.Generation), store.ErrStale)
		back := next
		back.Generation--
		p.is("an update to a lower generation", tx.UpdateProfile(back, next.Generation), store.ErrStale)
		got(p, "after the update", next)(tx.Profile(was.ID))
		p.is("update of an unknown profile", tx.UpdateProfile(newProfile(mine), 0), store.ErrAbsent)
		p.ok("note of a use", tx.UpdateProfile(next.Used(at(9)), next.Generation))
		got(p, "after the use", next.Used(at(9)))(tx.Profile(was.ID))
	})

	// Two that read the same generation: one wins.
	wins := make(chan error, 2)
	for _, to := range []profile.Status{profile.Ready, profile.Revoked} {
		mineToo, err := next.To(to, at(10))
		p.ok("transition", err)
		go func() {
			wins <- p.store.Tx(p.ctx, mine, func(tx store.Tx) error { return tx.UpdateProfile(mineToo, next.Generation) })
		}()
	}
	a, b := <-wins, <-wins
	if (a == nil) == (b == nil) {
		p.violated("of two updates under one generation exactly one succeeds; got %v and %v", a, b)
	}
	if a == nil {
		a = b
	}
	p.is("the loser", a, store.ErrStale)
}

func profileDeleted(p *probe) {
	kept := bound(mine)
	c := newCeremony(kept)
	s := newSession(mine, kept.ID)
	p.write(func(tx store.Tx) {
		p.ok("insert", tx.InsertProfile(kept))
		p.ok("insert", tx.InsertCeremony(c))
		p.ok("insert", tx.InsertSession(s))
		p.is("delete under another generation", tx.DeleteProfile(kept.ID, kept.Generation-1), store.ErrStale)
		got(p, "after a stale delete", kept)(tx.Profile(kept.ID))
		p.ok("delete", tx.DeleteProfile(kept.ID, kept.Generation))
		p.is("delete again", tx.DeleteProfile(kept.ID, kept.Generation), store.ErrAbsent)
	})
	p.view(mine, func(tx store.Tx) {
		absent[profile.Profile](p, "deleted profile")(tx.Profile(kept.ID))
		absent[ceremony.Ceremony](p, "ceremony of a deleted profile")(tx.Ceremony(c.ID))
		got(p, "session of a deleted profile", s)(tx.Session(s.ID))
	})
}

func ceremonies(p *probe) {
	owner, other := bound(mine), bound(mine)
	first, second := newCeremony(owner), newCeremony(owner)
	second.CreatedAt = at(-10) // a clock that went back does not change which is newest
	p.write(func(tx store.Tx) {
		p.ok("insert", tx.InsertProfile(owner))
		p.ok("insert", tx.InsertProfile(other))
		absent[ceremony.Ceremony](p, "latest of none")(tx.LatestCeremony(owner.ID))
		p.ok("insert", tx.InsertCeremony(first))
		p.ok("insert", tx.InsertCeremony(second))
		p.is("insert of the same id", tx.InsertCeremony(first), store.ErrExists)
	})
	done, changed := second.To(ceremony.Ready, at(4))
	if !changed {
		panic("fixture: the ceremony cannot become ready")
	}
	p.write(func(tx store.Tx) {
		got(p, "ceremony", first)(tx.Ceremony(first.ID))
		got(p, "latest", second)(tx.LatestCeremony(owner.ID))
		absent[ceremony.Ceremony](p, "latest of another profile")(tx.LatestCeremony(other.ID))
		absent[ceremony.Ceremony](p, "unknown ceremony")(tx.Ceremony(ident.New()))
		p.is("update under another status", tx.UpdateCeremony(done, ceremony.AuthenticationRequired), store.ErrStale)
		got(p, "after a stale update", second)(tx.Ceremony(second.ID))
		p.ok("update", tx.UpdateCeremony(done, second.Status))
		got(p, "after the update", done)(tx.Ceremony(second.ID))
		got(p, "the other one", first)(tx.Ceremony(first.ID))
		p.is("update of an unknown ceremony", tx.UpdateCeremony(newCeremony(owner), ceremony.NeedsUser), store.ErrAbsent)
	})
	err := p.store.Tx(p.ctx, mine, func(tx store.Tx) error { return tx.InsertCeremony(newCeremony(newProfile(mine))) })
	p.is("ceremony of an unknown profile", err, store.ErrAbsent)
}

func sessions(p *probe) {
	ofProfile, ephemeral, third := newSession(mine, ident.New()), newSession(mine, ""), newSession(mine, "")
	id := func(s run.Session) string { return s.ID }
	p.write(func(tx store.Tx) {
		for _, s := range []run.Session{ofProfile, ephemeral, third} {
			p.ok("insert", tx.InsertSession(s))
		}
		p.is("insert of the same id", tx.InsertSession(ofProfile), store.ErrExists)
		p.ok("end", tx.EndSession(third.ID, at(7)))
		p.ok("end again", tx.EndSession(third.ID, at(8)))
		p.is("end of an unknown session", tx.EndSession(ident.New(), at(8)), store.ErrAbsent)
	})
	third.EndedAt = at(7)
	p.view(mine, func(tx store.Tx) {
		got(p, "session", ofProfile)(tx.Session(ofProfile.ID))
		got(p, "ephemeral session", ephemeral)(tx.Session(ephemeral.ID))
		got(p, "ended session", third)(tx.Session(third.ID))
		absent[run.Session](p, "unknown session")(tx.Session(ident.New()))
		names(p, "all sessions", id, third.ID, ephemeral.ID, ofProfile.ID)(tx.Sessions("", false, 10))
		names(p, "live sessions", id, ephemeral.ID, ofProfile.ID)(tx.Sessions("", true, 10))
		names(p, "live sessions of the profile", id, ofProfile.ID)(tx.Sessions(ofProfile.ProfileID, true, 10))
		names(p, "all sessions of the profile", id, ofProfile.ID)(tx.Sessions(ofProfile.ProfileID, false, 10))
		names(p, "sessions of another profile", id)(tx.Sessions(ident.New(), false, 10))
	})
}

func invocations(p *probe) {
	s, other := newSession(mine, ""), newSession(mine, "")
	id := func(i run.Invocation) string { return i.ID }
	act, read, elsewhere := newInvocation(s), newInvocation(s), newInvocation(other)
	read.EffectSentAt = time.Time{}
	p.write(func(tx store.Tx) {
		p.ok("insert", tx.InsertSession(s))
		p.ok("insert", tx.InsertSession(other))
		for _, i := range []run.Invocation{act, read, elsewhere} {
			p.ok("insert", tx.InsertInvocation(i))
		}
		p.is("insert of the same id", tx.InsertInvocation(act), store.ErrExists)
	})
	p.view(mine, func(tx store.Tx) {
		got(p, "invocations of the session", []run.Invocation{read, act})(tx.Invocations(s.ID, 10))
		names(p, "running invocations", id, elsewhere.ID, read.ID, act.ID)(tx.RunningInvocations(10))
	})
	done := act
	done.Outcome, done.Code, done.FinishedAt = run.Uncertain, "tool.browser.outcome_unknown", at(9)
	late := done
	late.EffectSentAt = at(100) // not among what finishing stores
	p.write(func(tx store.Tx) {
		p.ok("finish", tx.FinishInvocation(late))
		again := done
		again.Outcome = run.Succeeded
		p.is("finish again", tx.FinishInvocation(again), store.ErrStale)
		p.is("finish of an unknown invocation", tx.FinishInvocation(finished(newInvocation(s))), store.ErrAbsent)
		got(p, "after finishing", []run.Invocation{read, done})(tx.Invocations(s.ID, 10))
		names(p, "still running", id, elsewhere.ID, read.ID)(tx.RunningInvocations(10))
	})
	err := p.store.Tx(p.ctx, mine, func(tx store.Tx) error { return tx.InsertInvocation(newInvocation(newSession(mine, ""))) })
	p.is("invocation of an unknown session", err, store.ErrAbsent)
}

func finished(i run.Invocation) run.Invocation { return i.Abandoned(at(9)) }

func oneInvocationPerApproval(p *probe) {
	s := newSession(mine, "")
	a := newApproval(s)
	first, second := newInvocation(s), newInvocation(s)
	first.ApprovalID, second.ApprovalID = a.ID, a.ID
	p.write(func(tx store.Tx) {
		p.ok("insert", tx.InsertSession(s))
		p.ok("insert", tx.InsertApproval(a))
		p.ok("first call", tx.InsertInvocation(first))
		p.is("second call", tx.InsertInvocation(second), store.ErrExists)
		p.ok("finish", tx.FinishInvocation(finished(first)))
		p.is("second call after the first finished", tx.InsertInvocation(second), store.ErrExists)
	})
}

func images(p *probe) {
	one, other := newSession(mine, ""), newSession(mine, "")
	first, second, third := newImage(one), newImage(one), newImage(other)
	second.Type, second.Size = artifact.JPEG, artifact.MaxSize
	p.write(func(tx store.Tx) {
		p.ok("insert", tx.InsertSession(one))
		p.ok("insert", tx.InsertSession(other))
		got(p, "use of nothing", artifact.Use{})(tx.ImageUse())
		for _, i := range []artifact.Image{first, second, third} {
			p.ok("insert", tx.InsertImage(i))
		}
		p.is("insert of the same id", tx.InsertImage(first), store.ErrExists)
	})
	p.is("insert without a session", p.store.Tx(p.ctx, mine, func(tx store.Tx) error { return tx.InsertImage(newImage(newSession(mine, ""))) }), store.ErrAbsent)
	p.write(func(tx store.Tx) {
		got(p, "image", second)(tx.Image(second.ID))
		absent[artifact.Image](p, "unknown image")(tx.Image(ident.New()))
		got(p, "images of a session", []artifact.Image{second, first})(tx.Images(one.ID, 10))
		got(p, "all images", []artifact.Image{third, second, first})(tx.Images("", 10))
		got(p, "use", artifact.Use{Images: 3, Bytes: first.Size + second.Size + third.Size})(tx.ImageUse())
		p.ok("delete", tx.DeleteImage(second.ID))
		p.is("delete again", tx.DeleteImage(second.ID), store.ErrAbsent)
		absent[artifact.Image](p, "deleted image")(tx.Image(second.ID))
		got(p, "use afterwards", artifact.Use{Images: 2, Bytes: first.Size + third.Size})(tx.ImageUse())
	})
}

func devices(p *probe) {
	s, ended := newSession(mine, ""), newSession(mine, "")
	owner, agent, gone, late := newDevice(mine), newDevice(mine), newDevice(mine), newDevice(mine)
	agent.Role, agent.SessionID = caller.Agent, s.ID
	late.Role, late.SessionID = caller.Agent, ended.ID
	p.write(func(tx store.Tx) {
		p.ok("insert", tx.InsertSession(s))
		p.ok("insert", tx.InsertSession(ended))
		for _, d := range []device.Device{owner, agent, gone, late} {
			p.ok("insert", tx.InsertDevice(d))
		}
		p.is("insert of the same fingerprint", tx.InsertDevice(owner), store.ErrExists)
		p.ok("revoke", tx.RevokeDevice(gone.Fingerprint, at(6)))
		p.ok("revoke again", tx.RevokeDevice(gone.Fingerprint, at(7)))
		p.ok("seen", tx.SeenDevice(agent.Fingerprint, at(8)))
		p.ok("end session", tx.EndSession(ended.ID, at(9)))
		p.is("revoke of an unknown device", tx.RevokeDevice(ident.Hex(16), at(6)), store.ErrAbsent)
		p.is("sight of an unknown device", tx.SeenDevice(ident.Hex(16), at(6)), store.ErrAbsent)
	})
	gone.RevokedAt, agent.LastSeenAt = at(6), at(8)
	for _, d := range []device.Device{owner, agent, gone, late} {
		got(p, "device", d)(p.store.Device(p.ctx, d.Fingerprint))
	}
	absent[device.Device](p, "unknown device")(p.store.Device(p.ctx, ident.Hex(16)))
	p.view(mine, func(tx store.Tx) {
		got(p, "all devices", []device.Device{late, gone, agent, owner})(tx.Devices(false, 10))
		got(p, "live devices", []device.Device{agent, owner})(tx.Devices(true, 10))
	})
	p.in(foreign[0], func(tx store.Tx) {
		d := newDevice(foreign[0])
		d.Fingerprint = owner.Fingerprint
		p.is("another scope's fingerprint", tx.InsertDevice(d), store.ErrExists)
	})
}

func approvals(p *probe) {
	s := newSession(mine, ident.New())
	a, b := newApproval(s), newApproval(s)
	p.write(func(tx store.Tx) {
		p.ok("insert", tx.InsertSession(s))
		p.ok("insert", tx.InsertApproval(a))
		p.ok("insert", tx.InsertApproval(b))
		p.is("insert of the same id", tx.InsertApproval(a), store.ErrExists)
		got(p, "approval", a)(tx.Approval(a.ID))
		absent[approval.Approval](p, "unknown approval")(tx.Approval(ident.New()))
	})
	denied, err := a.Decide(approval.Deny, "not now", ident.Hex(16), at(2))
	p.ok("decide", err)
	p.write(func(tx store.Tx) {
		p.is("update under another status", tx.UpdateApproval(denied, approval.Approved), store.ErrStale)
		got(p, "after a stale update", a)(tx.Approval(a.ID))
		moved := denied
		moved.Digest, moved.SessionID, moved.Generation = b.Digest, ident.New(), 99
		p.ok("update", tx.UpdateApproval(moved, approval.Pending))
		got(p, "the answer changed, what it is about did not", denied)(tx.Approval(a.ID))
		got(p, "the other one", b)(tx.Approval(b.ID))
		p.is("a second answer", tx.UpdateApproval(denied, approval.Pending), store.ErrStale)
		p.is("update of an unknown approval", tx.UpdateApproval(newApproval(s), approval.Pending), store.ErrAbsent)
	})
	err = p.store.Tx(p.ctx, mine, func(tx store.Tx) error { return tx.InsertApproval(newApproval(newSession(mine, ""))) })
	p.is("approval of an unknown session", err, store.ErrAbsent)
}

func oneOpenApproval(p *probe) {
	s, other := newSession(mine, ""), newSession(mine, "")
	first := newApproval(s)
	twin := func(s run.Session) approval.Approval {
		a := newApproval(s)
		a.Digest = first.Digest
		return a
	}
	p.write(func(tx store.Tx) {
		p.ok("insert", tx.InsertSession(s))
		p.ok("insert", tx.InsertSession(other))
		absent[approval.Approval](p, "open of none")(tx.OpenApproval(s.ID, first.Digest))
		absent[approval.Approval](p, "last of none")(tx.LastApproval(s.ID, first.Digest))
		p.ok("insert", tx.InsertApproval(first))
		p.is("second while one is pending", tx.InsertApproval(twin(s)), store.ErrExists)
		p.ok("the same digest in another session", tx.InsertApproval(twin(other)))
		got(p, "open", first)(tx.OpenApproval(s.ID, first.Digest))
	})
	approved, err := first.Decide(approval.ApproveOnce, "", ident.Hex(16), at(2))
	p.ok("decide", err)
	used, err := approved.Use(s.ID, first.Digest, first.Generation, at(3))
	p.ok("use", err)
	second := twin(s)
	p.write(func(tx store.Tx) {
		p.ok("update", tx.UpdateApproval(approved, approval.Pending))
		p.is("second while one is approved", tx.InsertApproval(twin(s)), store.ErrExists)
		got(p, "open", approved)(tx.OpenApproval(s.ID, first.Digest))
		p.ok("update", tx.UpdateApproval(used, approval.Approved))
		absent[approval.Approval](p, "open after use")(tx.OpenApproval(s.ID, first.Digest))
		got(p, "last after use", used)(tx.LastApproval(s.ID, first.Digest))
		p.ok("second after use", tx.InsertApproval(second))
		got(p, "last", second)(tx.LastApproval(s.ID, first.Digest))
	})
}

func approvalLists(p *probe) {
	s, other := newSession(mine, ""), newSession(mine, "")
	pending, denied, elsewhere := newApproval(s), newApproval(s), newApproval(other)
	denied.Status, denied.DecidedBy, denied.DecidedAt = approval.Denied, ident.Hex(16), at(1)
	id := func(a approval.Approval) string { return a.ID }
	p.write(func(tx store.Tx) {
		p.ok("insert", tx.InsertSession(s))
		p.ok("insert", tx.InsertSession(other))
		for _, a := range []approval.Approval{pending, denied, elsewhere} {
			p.ok("insert", tx.InsertApproval(a))
		}
		names(p, "all", id, elsewhere.ID, denied.ID, pending.ID)(tx.Approvals("", 10))
		names(p, "pending", id, elsewhere.ID, pending.ID)(tx.Approvals("", 10, approval.Pending))
		names(p, "pending or denied", id, elsewhere.ID, denied.ID, pending.ID)(tx.Approvals("", 10, approval.Pending, approval.Denied))
		names(p, "of the session", id, denied.ID, pending.ID)(tx.Approvals(s.ID, 10))
		names(p, "denied of the session", id, denied.ID)(tx.Approvals(s.ID, 10, approval.Denied))
		names(p, "used", id)(tx.Approvals("", 10, approval.Used))
		names(p, "newest of the session", id, denied.ID)(tx.Approvals(s.ID, 1))
	})
}
