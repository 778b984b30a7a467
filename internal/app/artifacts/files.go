package artifacts

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/privatefs"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// folder opens the folder of one scope, and makes it when make is set. Its
// name says nothing of whose it is.
func (a *Artifacts) folder(scope caller.Scope, make bool) (*privatefs.Dir, error) {
	path := filepath.Join(a.Dir, ident.Derived("images", scope.Tenant, scope.Principal))
	if make {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
	}
	return privatefs.Open(path)
}

// write stores the bytes under their checksum; they appear whole or not at
// all. A file that is there is written again: it may not be what it was.
func (a *Artifacts) write(scope caller.Scope, sum string, data []byte) error {
	dir, err := a.folder(scope, true)
	if err != nil {
		return err
	}
	staged := ".new-" + ident.Hex(8)
	if err = dir.Stage(staged, data); err == nil {
		err = errors.Join(dir.Rename(staged, sum), dir.Sync())
	}
	return errors.Join(err, dir.Close())
}

func (a *Artifacts) read(scope caller.Scope, sum string) ([]byte, error) {
	dir, err := a.folder(scope, false)
	if err != nil {
		return nil, err
	}
	data, err := dir.Read(sum, artifact.MaxSize)
	return data, errors.Join(err, dir.Close())
}

// tidy removes the files that no record of the scope names. The caller holds
// mu. What cannot be removed now is tried again by the next sweep.
func (a *Artifacts) tidy(ctx context.Context, scope caller.Scope) {
	if err := a.removeUnnamed(ctx, scope); err != nil {
		a.Log.Warn("files of images were not removed", "error", err)
	}
}

func (a *Artifacts) removeUnnamed(ctx context.Context, scope caller.Scope) error {
	dir, err := a.folder(scope, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var named []string
	err = a.Store.View(ctx, scope, func(tx store.Tx) error {
		all, err := tx.Images("", maxListed)
		for _, i := range all {
			named = append(named, i.SHA256)
		}
		return err
	})
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	names, err := dir.Names()
	for _, name := range names {
		if !slices.Contains(named, name) {
			err = errors.Join(err, dir.Remove(name))
		}
	}
	return errors.Join(err, dir.Close())
}
