package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
)

// Reader does a task with nothing but the JSON of the answers.
type Reader struct {
	Broker *broker.Broker
	Agent  caller.Caller
	Report Report
}

// answer is the part of an answer that a reader uses.
type answer struct {
	Revision string `json:"revision"`
	Elements []struct {
		Ref  string `json:"ref"`
		Role string `json:"role"`
		Name string `json:"name"`
	} `json:"elements"`
	NextObserve json.RawMessage `json:"next_observe"`
	Blocked     string          `json:"expansion_blocked"`
	Condition   *struct {
		Status string `json:"status"`
	} `json:"condition"`
}

// maxReads is where a reader gives up.
const maxReads = 200

func (r *Reader) call(ctx context.Context, tool action.Tool, args any) (answer, error) {
	var a answer
	body, err := json.Marshal(args)
	if err != nil {
		return a, err
	}
	v, err := r.Broker.Call(ctx, r.Agent, tool, body, nil)
	if err != nil {
		return a, err
	}
	out, err := v.MarshalJSON() // as a client gets it
	if err != nil {
		return a, err
	}
	if len(out) > r.Report.Budget {
		return a, fmt.Errorf("tasks: an answer has %d bytes, and the budget is %d", len(out), r.Report.Budget)
	}
	r.Report.Largest = max(r.Report.Largest, len(out))
	if tool == action.Act {
		r.Report.Actions++
	} else {
		r.Report.Observations++
	}
	return a, json.Unmarshal(out, &a)
}

// find goes on from an answer until it shows the element.
func (r *Reader) find(ctx context.Context, a answer, role, name string) (answer, string, error) {
	for range maxReads {
		for _, e := range a.Elements {
			if e.Role == role && e.Name == name {
				return a, e.Ref, nil
			}
		}
		if len(a.NextObserve) == 0 {
			return a, "", fmt.Errorf("tasks: the page ends without a %s named %q (blocked: %q)", role, name, a.Blocked)
		}
		next, err := r.call(ctx, action.Observe, a.NextObserve)
		if err != nil {
			return a, "", err
		}
		a = next
	}
	return a, "", errors.New("tasks: the page does not end")
}

func (r *Reader) act(ctx context.Context, a answer, role, name, kind string, more map[string]any) (answer, error) {
	a, ref, err := r.find(ctx, a, role, name)
	if err != nil {
		return a, err
	}
	args := map[string]any{"kind": kind, "expected_revision": a.Revision, "ref": ref}
	for k, v := range more {
		args[k] = v
	}
	return r.call(ctx, action.Act, args)
}

// Do carries the task out. That it returns nil proves nothing.
func (r *Reader) Do(ctx context.Context, t Task) error {
	r.Report = Report{ID: t.ID, Budget: t.Budget}
	began := time.Now()
	defer func() { r.Report.Milliseconds = time.Since(began).Milliseconds() }()
	a, err := r.call(ctx, action.Navigate, map[string]any{"url": "https://" + Host + "/" + t.Fixture})
	if err != nil {
		return err
	}
	switch t.Fixture {
	case "slow":
		a, err = r.call(ctx, action.Observe, map[string]any{"wait_for": map[string]any{"role": t.Role, "name": t.Target, "timeout_ms": 5000}})
		if err == nil && (a.Condition == nil || a.Condition.Status != "satisfied") {
			err = errors.New("tasks: what was waited for did not come")
		}
	case "text":
		if a, err = r.act(ctx, a, t.Role, t.Target, "type", map[string]any{"value": "forty-two"}); err == nil {
			_, err = r.act(ctx, a, t.Role, t.Target, "press", map[string]any{"key": "Enter"})
		}
		return err
	case "select-check":
		if a, err = r.act(ctx, a, t.Role, t.Target, "select", map[string]any{"value": "Blue"}); err != nil {
			return err
		}
		if a, err = r.act(ctx, a, "checkbox", "Agree", "check", nil); err != nil {
			return err
		}
		_, err = r.act(ctx, a, "button", "Send", "click", nil)
		return err
	}
	for range t.Effects {
		if err != nil {
			return err
		}
		a, err = r.act(ctx, a, t.Role, t.Target, "click", nil)
	}
	return err
}
