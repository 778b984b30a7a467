package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

// stepTime bounds one step.
const stepTime = 3 * time.Minute

// story is one run of the main job on one website.
type story struct {
	subject
	site   *practice.Site // counts connections to names that are off limits
	owner  *owner
	bin    string
	dev    string
	data   string
	report *report

	log      tail // what every program wrote
	told     strings.Builder
	programs *programs
	agent    *agent
	profile  string
}

// tell runs the steps in order until one fails, and cleans up.
func (s *story) tell(ctx context.Context) (ok bool) {
	fmt.Printf("\n%s\n", s.name)
	s.report.chapter(s.name)
	defer func() {
		if err := s.end(); err != nil {
			fmt.Println("  ✗ cleaning up:", err)
			ok = false
		}
		if !ok {
			fmt.Printf("What the programs wrote:\n%s\n", s.log.String())
		}
	}()
	for _, st := range []struct {
		title string
		run   func(context.Context) error
	}{
		{"Start every program and log in to the console", s.start},
		{"Create a profile", s.create},
		{"Sign in, unseen by the agent", s.signInOnce},
		{"The agent observes", s.observe},
		{"An approved edit: exactly one effect", s.approved},
		{"A denied edit: no effect", s.denied},
		{"A stale revision is refused", s.stale},
		{"A navigation off the origin is refused: no connection", s.offOrigin},
		{"Restart every program", s.restart},
		{"Still signed in", s.still},
		{"Revoke: the next call is refused, the material is gone", s.revoke},
		{"Nothing is left behind", s.nothingLeft},
	} {
		stepCtx, cancel := context.WithTimeout(ctx, stepTime)
		began := time.Now()
		s.report.step(st.title)
		err := st.run(stepCtx)
		took := time.Since(began)
		cancel()
		s.report.finish(took, err)
		if err != nil {
			fmt.Printf("  ✗ %-58s %6.2f s\n    %v\n", st.title, took.Seconds(), err)
			s.failurePicture(ctx)
			return false
		}
		fmt.Printf("  ✓ %-58s %6.2f s\n", st.title, took.Seconds())
	}
	return true
}

func (s *story) failurePicture(ctx context.Context) {
	if s.owner.tab == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if jpeg, err := s.owner.tab.Picture(ctx); err == nil {
		s.report.picture("The console when it failed", jpeg)
	}
}

// dismiss ends the agent's session and keeps what it was told.
func (s *story) dismiss() error {
	if s.agent == nil {
		return nil
	}
	a := s.agent
	s.agent = nil
	s.told.WriteString(a.transcript())
	return a.close()
}

// hire starts an agent with a session and a browser of its own.
func (s *story) hire(ctx context.Context) error {
	if err := s.dismiss(); err != nil {
		return err
	}
	a, err := startAgent(ctx, s.bin, s.data, s.profile, &s.log)
	s.agent = a
	return err
}

// end stops what runs.
func (s *story) end() error {
	errs := []error{s.dismiss()}
	if s.programs != nil {
		errs = append(errs, s.programs.stop())
		s.programs = nil
	}
	return errors.Join(errs...)
}

// console keeps a picture of the console once nothing on it moves.
func (s *story) console(ctx context.Context, caption string) error {
	if err := s.owner.tab.Wait(ctx, `document.getAnimations().every((a) => a.playState !== "running")`); err != nil {
		return err
	}
	jpeg, err := s.owner.tab.Picture(ctx)
	if err == nil {
		s.report.picture(caption, jpeg)
	}
	return err
}

// shown keeps a picture of what the agent asked and was told.
func (s *story) shown(ctx context.Context, caption string, v answer) error {
	jpeg, err := s.owner.slide(ctx, caption, v.asked, v.raw)
	if err == nil {
		s.report.picture(caption, jpeg)
	}
	return err
}

func (s *story) start(ctx context.Context) error {
	began := time.Now()
	p, err := startPrograms(ctx, s.bin, s.data, s.dev, &s.log)
	if err != nil {
		return err
	}
	s.programs = p
	s.report.figure("up to ready", time.Since(began))
	if err := s.owner.logIn(ctx, p.LoginURL); err != nil {
		return err
	}
	return s.console(ctx, "The console, just opened with a code that works once.")
}
