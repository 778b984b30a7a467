// Package artifacts keeps the images that the owner attached to agent
// sessions: records in the store, bytes in private files named by their
// checksum (UPL-02, UPL-03, UPL-06, UPL-09). An image ends with its session,
// with its time, or when the owner removes it. Agents learn identifiers only.
package artifacts

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// maxListed is the longest list of images; a quota is no larger.
const maxListed = 200

// Config of Artifacts. Members that may be zero say so.
type Config struct {
	Store store.Store
	Dir   string           // absolute; made if it is not there
	Quota artifact.Quota   // of one principal; artifact.DefaultQuota when zero
	Life  time.Duration    // of an image; artifact.Life when zero
	Now   func() time.Time // nil means time.Now
	Log   *slog.Logger
}

// Artifacts is safe for concurrent use.
type Artifacts struct {
	Config
	mu sync.Mutex // held while records and files change together
}

// New checks the configuration.
func New(c Config) (*Artifacts, error) {
	if c.Quota == (artifact.Quota{}) {
		c.Quota = artifact.DefaultQuota()
	}
	if c.Life == 0 {
		c.Life = artifact.Life
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Store == nil || c.Log == nil || !filepath.IsAbs(c.Dir) || c.Life < 0 || c.Quota.Images < 1 || c.Quota.Images > maxListed || c.Quota.Bytes < 1 {
		return nil, errors.New("artifacts: a store, a logger, an absolute folder and a quota of 1 to 200 images are needed")
	}
	return &Artifacts{Config: c}, nil
}

// Attach reads one image of at most artifact.MaxSize bytes and gives it to a
// live session. Nothing is read when the quota is used up. Errors: NotFound,
// Conflict for an ended session or a full quota, PayloadTooLarge,
// UnsupportedMedia.
func (a *Artifacts) Attach(ctx context.Context, by caller.Caller, session string, body io.Reader) (artifact.Image, error) {
	if err := a.room(ctx, by, session, 1); err != nil {
		return artifact.Image{}, err
	}
	data, err := io.ReadAll(io.LimitReader(body, artifact.MaxSize+1))
	if err != nil {
		return artifact.Image{}, fault.Wrap(fault.MalformedRequest, "The image did not arrive whole. Nothing was attached.", err)
	}
	defer clear(data)
	image, err := artifact.Describe(by.Scope, ident.New(), session, data, a.Now(), a.Life)
	if err != nil {
		return artifact.Image{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.room(ctx, by, session, image.Size); err != nil {
		return artifact.Image{}, err
	}
	if err := a.write(by.Scope, image.SHA256, data); err != nil {
		return artifact.Image{}, fault.Wrap(fault.Internal, "The image could not be written. Nothing was attached.", err)
	}
	err = a.Store.Tx(ctx, by.Scope, func(tx store.Tx) error {
		if err := tx.InsertImage(image); err != nil {
			return err
		}
		return a.note(tx, by, audit.ImageAttached, image.ID)
	})
	if err != nil {
		a.tidy(context.WithoutCancel(ctx), by.Scope)
		return artifact.Image{}, public(err)
	}
	return image, nil
}

// room refuses what cannot be attached, before anything is read or written.
func (a *Artifacts) room(ctx context.Context, by caller.Caller, session string, size int64) error {
	return a.view(ctx, by, func(tx store.Tx) error {
		s, err := tx.Session(session)
		if err != nil {
			return err
		}
		if !s.Live() {
			return fault.New(fault.Conflict, "The agent's session has ended. Nothing was attached.")
		}
		used, err := tx.ImageUse()
		if err != nil {
			return err
		}
		if !a.Quota.Takes(used, size) {
			return fault.Newf(fault.Conflict, "No more than %d images of %d MiB together can be attached at once. Nothing was attached; remove some, or end their sessions.", a.Quota.Images, a.Quota.Bytes>>20)
		}
		return nil
	})
}

// List is the images of one session that can still be used, newest first.
func (a *Artifacts) List(ctx context.Context, by caller.Caller, session string) (list []artifact.Image, err error) {
	err = a.view(ctx, by, func(tx store.Tx) error {
		if _, err := tx.Session(session); err != nil {
			return err
		}
		list, err = a.usable(tx, by.Scope, session)
		return err
	})
	return list, err
}

// Content is an image of a session with its bytes, for its owner.
func (a *Artifacts) Content(ctx context.Context, by caller.Caller, session, id string) (artifact.Payload, error) {
	if err := by.RequireOwner(); err != nil {
		return artifact.Payload{}, err
	}
	p, err := a.resolve(ctx, by.Scope, session, id)
	if errors.Is(err, errUnresolved) {
		return p, fault.New(fault.NotFound, "There is no such image.")
	}
	return p, public(err)
}

// Remove deletes one image. NotFound when the session has no such one.
func (a *Artifacts) Remove(ctx context.Context, by caller.Caller, session, id string) error {
	if err := by.RequireOwner(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.Store.Tx(ctx, by.Scope, func(tx store.Tx) error {
		image, err := tx.Image(id)
		if err != nil {
			return err
		}
		if image.SessionID != session {
			return store.ErrAbsent
		}
		if err := tx.DeleteImage(id); err != nil {
			return err
		}
		return a.note(tx, by, audit.ImageRemoved, id)
	})
	if err == nil {
		a.tidy(context.WithoutCancel(ctx), by.Scope)
	}
	return public(err)
}

// Usable is the images that the agent's session can upload, newest first.
func (a *Artifacts) Usable(ctx context.Context, agent caller.Caller) (list []artifact.Image, err error) {
	err = a.Store.View(ctx, agent.Scope, func(tx store.Tx) error {
		list, err = a.usable(tx, agent.Scope, agent.Session)
		return err
	})
	return list, public(err)
}

func (a *Artifacts) usable(tx store.Tx, scope caller.Scope, session string) (list []artifact.Image, err error) {
	all, err := tx.Images(session, maxListed)
	for _, i := range all {
		if i.Usable(scope, session, a.Now()) {
			list = append(list, i)
		}
	}
	return list, err
}

// errUnresolved: no such image, another's, one that has expired, or one whose
// file is not what it was. Nobody is told which (UPL-06).
var errUnresolved = errors.New("artifacts: not resolvable")

// Resolve is the image with its bytes, checked again from the file on: the
// seven checks of UPL-06. ok is false for everything that fails one of them.
func (a *Artifacts) Resolve(ctx context.Context, agent caller.Caller, id string) (p artifact.Payload, ok bool, err error) {
	p, err = a.resolve(ctx, agent.Scope, agent.Session, id)
	if errors.Is(err, errUnresolved) {
		return artifact.Payload{}, false, nil
	}
	return p, err == nil, public(err)
}

func (a *Artifacts) resolve(ctx context.Context, scope caller.Scope, session, id string) (artifact.Payload, error) {
	var image artifact.Image
	err := a.Store.View(ctx, scope, func(tx store.Tx) (err error) {
		if image, err = tx.Image(id); err != nil {
			return err
		}
		s, err := tx.Session(image.SessionID)
		if err == nil && !s.Live() {
			err = store.ErrAbsent
		}
		return err
	})
	if errors.Is(err, store.ErrAbsent) || err == nil && !image.Usable(scope, session, a.Now()) {
		return artifact.Payload{}, errUnresolved
	}
	if err != nil {
		return artifact.Payload{}, err
	}
	data, err := a.read(scope, image.SHA256)
	if err != nil || !image.Holds(data) {
		a.Log.Warn("an image is not what it was when it was attached", "image", image.ID, "error", err)
		return artifact.Payload{}, errUnresolved
	}
	return artifact.Payload{ID: image.ID, Type: image.Type, SHA256: image.SHA256, Data: secret.NewBytes(data)}, nil
}

// Sweep deletes what has expired or whose session has ended, and files that
// belong to no record. It is called at start and from time to time.
func (a *Artifacts) Sweep(ctx context.Context) error {
	scopes, err := a.Store.Scopes(ctx)
	if err != nil {
		return public(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var failed error
	for _, scope := range scopes {
		if err := a.expire(ctx, scope); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		a.tidy(ctx, scope)
	}
	return failed
}

func (a *Artifacts) expire(ctx context.Context, scope caller.Scope) error {
	over := func(tx store.Tx) (ids []string, err error) {
		all, err := tx.Images("", maxListed)
		for _, i := range all {
			s, err := tx.Session(i.SessionID)
			if err != nil {
				return nil, err
			}
			if !s.Live() || !a.Now().Before(i.ExpiresAt) {
				ids = append(ids, i.ID)
			}
		}
		return ids, err
	}
	var due []string
	err := a.Store.View(ctx, scope, func(tx store.Tx) (err error) { due, err = over(tx); return err })
	if err != nil || len(due) == 0 {
		return err
	}
	return a.Store.Tx(ctx, scope, func(tx store.Tx) error {
		for _, id := range due {
			if err := tx.DeleteImage(id); err != nil {
				return err
			}
			if err := a.note(tx, caller.Caller{Scope: scope}, audit.ImageRemoved, id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *Artifacts) note(tx store.Tx, by caller.Caller, kind audit.Kind, id string) error {
	_, err := tx.Append(audit.Entry{Scope: by.Scope, At: a.Now(), Kind: kind, Device: by.Device, Subject: id})
	return err
}

func (a *Artifacts) view(ctx context.Context, by caller.Caller, fn func(store.Tx) error) error {
	if err := by.RequireOwner(); err != nil {
		return err
	}
	return public(a.Store.View(ctx, by.Scope, fn))
}

// public gives the store's errors their codes.
func public(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrAbsent):
		return fault.Wrap(fault.NotFound, "There is no such session or image. Nothing was changed.", err)
	case errors.Is(err, store.ErrUnavailable):
		return fault.Wrap(fault.Internal, "The database cannot be read or written. Nothing was changed.", err).Retry()
	}
	return err
}
