package broker_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// A denied act has no effect, and asking again gets the same answer.
func TestDeniedActHasNoEffect(t *testing.T) {
	b := newBench(t, nil, nil)
	args := act(b.open(t), "click", "Save")
	_, err := b.call(action.Act, args)
	wantCode(t, err, fault.ApprovalPending)
	b.decide(t, b.approvals(t)[0].ID, approval.Deny)
	for range 2 {
		_, err = b.call(action.Act, args)
		wantCode(t, err, fault.ApprovalDenied)
	}
	if len(b.world.Effects()) != 0 || len(b.approvals(t)) != 1 {
		t.Errorf("effects %v, approvals %d", b.world.Effects(), len(b.approvals(t)))
	}
}

// The call that waits is woken by the owner's answer.
func TestWaitingCallIsWoken(t *testing.T) {
	b := newBench(t, nil, func(c *broker.Config) { c.ApprovalWait = time.Minute })
	args, err := json.Marshal(act(b.open(t), "type", "Subject", "value", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 1)
	done := make(chan error, 1)
	go func() {
		_, err := b.broker.Call(t.Context(), b.agent, action.Act, args, func(p broker.Pending) { asked <- p.ApprovalID })
		done <- err
	}()
	b.decide(t, <-asked, approval.ApproveOnce)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if e := b.world.Effects(); len(e) != 1 || e[0].Value != "hello" {
		t.Errorf("effects %v", e)
	}
}

// An approval that expired, or that was given before a new sign-in, authorizes
// nothing; the next call asks anew.
func TestStaleApprovalsAuthorizeNothing(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *bench){
		"expired": func(_ *testing.T, b *bench) { b.clock.Advance(approval.Life) },
		"signed in again": func(t *testing.T, b *bench) {
			err := b.store.Tx(t.Context(), b.agent.Scope, func(tx store.Tx) error {
				p, err := tx.Profile(b.profile)
				if err != nil {
					return err
				}
				return tx.UpdateProfile(p.SignIn(b.clock.Now()), p.Generation)
			})
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, nil)
			args := act(b.open(t), "click", "Save")
			_, err := b.call(action.Act, args)
			wantCode(t, err, fault.ApprovalPending)
			first := b.approvals(t)[0]
			b.decide(t, first.ID, approval.ApproveOnce)
			spoil(t, b)
			_, err = b.call(action.Act, args)
			wantCode(t, err, fault.ApprovalPending)
			if len(b.world.Effects()) != 0 {
				t.Errorf("effects %v", b.world.Effects())
			}
			if open := b.approvals(t, approval.Pending, approval.Approved); len(open) != 1 || open[0].ID == first.ID {
				t.Errorf("open approvals %+v", open)
			}
		})
	}
}

// CAP-06: an approval answered after the page changed is refused, and nothing
// is sent; a revision that is not the newest is refused without asking anybody.
func TestChangedPageIsRefused(t *testing.T) {
	b := newBench(t, nil, nil)
	old := b.open(t)
	args := act(old, "click", "Save")
	_, err := b.call(action.Act, args)
	wantCode(t, err, fault.ApprovalPending)
	b.decide(t, b.approvals(t)[0].ID, approval.ApproveOnce)
	b.world.Put(home, fake.Doc{Title: "Desk", Controls: []fake.Control{{Role: "button", Name: "Delete everything"}}})
	_, err = b.call(action.Act, args)
	wantCode(t, err, fault.PageChanged)

	if _, err := b.call(action.Observe, struct{}{}); err != nil {
		t.Fatal(err)
	}
	_, err = b.call(action.Act, act(old, "click", "Save"))
	wantCode(t, err, fault.PageChanged)
	if len(b.world.Effects()) != 0 || len(b.approvals(t)) != 1 {
		t.Errorf("effects %v, %d approvals", b.world.Effects(), len(b.approvals(t)))
	}
}

// DENY-03: typing into a credential field is refused before the owner is asked.
func TestCredentialFieldsRefuseTyping(t *testing.T) {
	b := newBench(t, nil, nil)
	_, err := b.call(action.Act, act(b.open(t), "type", "Password", "value", "x"))
	wantCode(t, err, fault.ActionNotAllowed)
	if len(b.approvals(t)) != 0 || len(b.world.Effects()) != 0 {
		t.Error("the owner was asked, or something was typed")
	}
}

// A question about a revision that is gone is withdrawn, so that the owner is
// never asked for something that can no longer be done; and one session cannot
// bury the owner in questions.
func TestQuestionsAreWithdrawnAndCapped(t *testing.T) {
	b := newBench(t, nil, nil)
	v := b.open(t)
	for i := range 30 {
		_, err := b.call(action.Act, act(v, "type", "Subject", "value", fmt.Sprint(i)))
		if i < broker.MaxOpen {
			wantCode(t, err, fault.ApprovalPending)
		} else {
			wantCode(t, err, fault.ActionNotAllowed)
		}
	}
	if n := len(b.approvals(t, approval.Pending)); n != broker.MaxOpen {
		t.Errorf("%d open questions", n)
	}
	if _, err := b.call(action.Observe, struct{}{}); err != nil {
		t.Fatal(err)
	}
	if n := len(b.approvals(t, approval.Pending, approval.Approved)); n != 0 {
		t.Errorf("%d questions about a revision that is gone", n)
	}
}
