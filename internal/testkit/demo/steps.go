package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

func (s *story) create(ctx context.Context) error {
	id, err := s.owner.create(ctx, s.origin)
	if err != nil {
		return err
	}
	s.profile = id
	if err := s.owner.state(ctx, id, "Sign-in needed"); err != nil {
		return err
	}
	return s.console(ctx, "A profile for one origin, not signed in yet.")
}

func (s *story) signInOnce(ctx context.Context) error {
	began := time.Now()
	p, err := s.owner.signIn(ctx, s.profile, s.signIn, s.programs.Ceremony)
	if err != nil {
		return err
	}
	s.report.figure("click to live picture", time.Since(began))
	p.keep = s.report.picture
	entered := time.Now()
	if err := s.enter(ctx, p); err != nil {
		return s.lastLook(ctx, p, err)
	}
	s.report.figure("password and code typed", time.Since(entered))
	typed := time.Now()
	doneCtx, cancel := context.WithTimeout(ctx, 45*time.Second)
	defer cancel()
	if err := p.done(doneCtx); err != nil {
		return s.lastLook(ctx, p, err)
	}
	s.report.figure("last key to sealed", time.Since(typed))
	if err := p.picture(ctx, "The site showed the owner as signed in: the session is sealed."); err != nil {
		return err
	}
	if err := s.owner.state(ctx, s.profile, "Ready"); err != nil {
		return err
	}
	sealed, err := s.sealed()
	if err == nil && len(sealed) == 0 {
		err = errors.New("there is no sealed session in the data folder")
	}
	return err
}

// lastLook adds a picture of the sign-in page to a failure.
func (s *story) lastLook(ctx context.Context, p *signInPage, failure error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(failure, p.picture(ctx, "The sign-in page when it failed"))
}

// sealed lists the files of the profile store, but its lock.
func (s *story) sealed() ([]string, error) {
	return filepath.Glob(filepath.Join(s.data, "profiles", "[^.]*"))
}

func (s *story) observe(ctx context.Context) error {
	began := time.Now()
	if err := s.hire(ctx); err != nil {
		return err
	}
	v, err := s.openSignedIn(ctx)
	if err != nil {
		return err
	}
	s.report.figure("agent started, browser leased, page open", time.Since(began))
	if v, err = s.agent.must(ctx, "browser.observe", map[string]any{}); err != nil {
		return err
	}
	s.report.figure("browser.observe", v.took)
	return s.shown(ctx, "What the agent is told of the page", v)
}

// openSignedIn opens the first page and checks with the site itself, not only
// in the text, that it was opened by somebody signed in.
func (s *story) openSignedIn(ctx context.Context) (answer, error) {
	mark := s.mark()
	v, err := s.agent.open(ctx, s.home)
	if err != nil {
		return v, err
	}
	if !strings.Contains(v.Text, s.shows) {
		return v, fmt.Errorf("the page does not show %q: %.300s", s.shows, v.Text)
	}
	known := func() bool { return s.known(mark) == nil }
	if err := waitFor(ctx, "the site to know its visitor", known); err != nil {
		return v, errors.Join(err, s.known(mark))
	}
	return v, nil
}

// ask has the agent act while the owner answers at the console.
func (s *story) ask(ctx context.Context, on answer, word, caption, kind, name string, more map[string]any) (answer, error) {
	type result struct {
		v   answer
		err error
	}
	got := make(chan result, 1)
	go func() {
		v, err := s.agent.act(ctx, on, kind, name, more)
		got <- result{v, err}
	}()
	answered := make(chan error, 1)
	ownerCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		answered <- s.owner.decide(ownerCtx, word, func() error { return s.console(ownerCtx, caption) })
	}()
	select {
	case r := <-got: // before the owner said anything: a refusal
		cancel()
		<-answered
		return r.v, errors.Join(r.err, fmt.Errorf("nobody was asked: %s %s", r.v.Code, r.v.Message))
	case err := <-answered:
		if err != nil {
			return answer{}, err
		}
	}
	r := <-got
	return r.v, r.err
}

// write fills the form's field with the owner's approval.
func (s *story) write(ctx context.Context, text string) (answer, error) {
	v, err := s.agent.open(ctx, s.form)
	if err != nil {
		return v, err
	}
	v, err = s.ask(ctx, v, "Approve once", "The agent wants to type. The owner sees what, and where.", "type", s.field, map[string]any{"value": text})
	if err == nil && v.Code != "" {
		err = fmt.Errorf("typing: %s: %s", v.Code, v.Message)
	}
	return v, err
}

func (s *story) approved(ctx context.Context) error {
	before, _, err := s.effects(ctx)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Written by an agent with approval, at %s", time.Now().Format("15:04:05"))
	v, err := s.write(ctx, text)
	if err != nil {
		return err
	}
	if v, err = s.ask(ctx, v, "Approve once", "The agent wants to save.", "click", s.button, nil); err != nil {
		return err
	}
	if v.Code != "" {
		return fmt.Errorf("saving: %s: %s", v.Code, v.Message)
	}
	after, newest, err := s.effects(ctx)
	if err != nil {
		return err
	}
	if after != before+1 || newest != text {
		return fmt.Errorf("the site counts %d saves after %d, the newest is %q", after, before, newest)
	}
	s.report.fact("saves in the site's own record", fmt.Sprintf("%d before, %d after", before, after))
	return s.shown(ctx, "The page after saving", v)
}

func (s *story) denied(ctx context.Context) error {
	before, _, err := s.effects(ctx)
	if err != nil {
		return err
	}
	v, err := s.write(ctx, "This must never be saved")
	if err != nil {
		return err
	}
	if v, err = s.ask(ctx, v, "Deny", "The agent wants to save again. This time the owner says no.", "click", s.button, nil); err != nil {
		return err
	}
	if v.Code != "approval_denied" {
		return fmt.Errorf("a denied call answered %q %s", v.Code, v.Message)
	}
	if err := s.unchanged(ctx, before); err != nil {
		return err
	}
	return s.shown(ctx, "What the agent is told", v)
}

func (s *story) unchanged(ctx context.Context, before int) error {
	after, newest, err := s.effects(ctx)
	if err != nil {
		return err
	}
	if after != before {
		return fmt.Errorf("the site counts %d saves after %d, the newest is %q", after, before, newest)
	}
	s.report.fact("saves in the site's own record", fmt.Sprintf("%d before, %d after", before, after))
	return nil
}

func (s *story) stale(ctx context.Context) error {
	// The last one's page still holds text that was not saved, and a site may
	// then ask whether it may be left, which an agent cannot answer.
	if err := s.hire(ctx); err != nil {
		return err
	}
	before, _, err := s.effects(ctx)
	if err != nil {
		return err
	}
	old, err := s.agent.open(ctx, s.form)
	if err != nil {
		return err
	}
	if _, err := s.agent.open(ctx, s.form); err != nil {
		return err
	}
	v, err := s.agent.act(ctx, old, "click", s.button, nil)
	if err != nil {
		return err
	}
	if v.Code != "tool.browser.page_changed" {
		return fmt.Errorf("a stale revision answered %q %s", v.Code, v.Message)
	}
	s.report.figure("refusal", v.took)
	if err := s.unchanged(ctx, before); err != nil {
		return err
	}
	return s.shown(ctx, "A reference of the page before the last is worth nothing", v)
}

func (s *story) offOrigin(ctx context.Context) error {
	v, err := s.agent.call(ctx, "browser.navigate", map[string]any{"url": practice.URL(practice.Elsewhere, "/")})
	if err != nil {
		return err
	}
	if v.Code != "tool.browser.url_disallowed" {
		return fmt.Errorf("a foreign origin answered %q %s", v.Code, v.Message)
	}
	s.report.figure("refusal", v.took)
	if n := len(s.site.Connections(practice.Elsewhere)); n != 0 {
		return fmt.Errorf("the foreign site saw %d connections", n)
	}
	s.report.fact("connections that the foreign site saw", "0")
	return s.shown(ctx, "An origin that the owner did not name", v)
}

func (s *story) restart(ctx context.Context) error {
	family, err := leak.Family(s.programs.cmd.Process.Pid)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.end(); err != nil {
		return err
	}
	s.report.figure("stop, sealing included", time.Since(began))
	if err := gone(family, s.data); err != nil {
		return err
	}
	return s.start(ctx)
}

// gone checks that no process of the run is alive.
func gone(family leak.Which, data string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	left, err := leak.Survivors(ctx, leak.Any(family, leak.ByMarker(data)))
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("still running: %v", left)
	}
	return err
}

func (s *story) still(ctx context.Context) error {
	if err := s.hire(ctx); err != nil {
		return err
	}
	v, err := s.openSignedIn(ctx)
	if err != nil {
		return err
	}
	s.report.figure("lease, restore and first page", v.took)
	return s.shown(ctx, "The same session, after all programs were started anew", v)
}

func (s *story) revoke(ctx context.Context) error {
	mark := s.mark()
	if err := s.owner.revoke(ctx, s.profile); err != nil {
		return err
	}
	v, err := s.agent.call(ctx, "browser.navigate", map[string]any{"url": s.home})
	switch {
	case err == nil && v.Code == "":
		return errors.New("the agent's next call was carried out")
	case err == nil:
		if err := s.shown(ctx, "The agent's next call", v); err != nil {
			return err
		}
	default: // its session was ended, which is an answer too
		s.report.fact("the agent's next call", "refused: its session is closed")
	}
	if s.mark() != mark {
		return errors.New("the site was visited after the profile was revoked")
	}
	if err := s.owner.state(ctx, s.profile, "Revoked"); err != nil {
		return err
	}
	if err := s.console(ctx, "Revoked, and one click from gone."); err != nil {
		return err
	}
	if err := s.owner.remove(ctx, s.profile); err != nil {
		return err
	}
	left, err := s.sealed()
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("sealed material is still there: %v", left)
	}
	s.report.fact("files in the profile store", fmt.Sprint(len(left)))
	return err
}

// nothingLeft stops everything and looks for processes and secrets.
func (s *story) nothingLeft(ctx context.Context) error {
	if err := s.owner.page(ctx, "activity"); err != nil {
		return err
	}
	if err := s.owner.tab.Wait(ctx, `document.querySelectorAll("main li, main tr").length > 5`); err != nil {
		return err
	}
	if err := s.console(ctx, "The whole story in the audit trail."); err != nil {
		return err
	}
	family, err := leak.Family(s.programs.cmd.Process.Pid)
	if err != nil {
		return err
	}
	if err := s.end(); err != nil {
		return err
	}
	if err := gone(family, s.data); err != nil {
		return err
	}
	// What the programs wrote and what the agent was told is searched like the
	// data folder.
	for name, text := range map[string]string{"programs.log": s.log.String(), "agent.json": s.told.String()} {
		if err := os.WriteFile(filepath.Join(s.data, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	secrets := s.secrets()
	hits, err := leak.Find(ctx, s.data, secrets)
	if err == nil && len(hits) > 0 {
		err = fmt.Errorf("secrets of the site were found: %v", hits)
	}
	s.report.fact("secrets of the site searched for", fmt.Sprint(len(secrets)))
	s.report.fact("found in data folder, logs, audit trail, agent's results", fmt.Sprint(len(hits)))
	return err
}
