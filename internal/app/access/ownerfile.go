package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

// maxCredential is more than any credential file has, in bytes.
const maxCredential = 512

// OwnerFile makes sure that the file holds a working owner's credential of the
// scope, on one line, readable by nobody else. It keeps one that works; when
// the file is missing, or its credential is revoked or another scope's, or
// others could have read it, it pairs anew and replaces the file. The folder
// must exist.
func (a *Access) OwnerFile(ctx context.Context, scope caller.Scope, path string) error {
	by := system(scope)
	if err := by.RequireOwner(); err != nil {
		return err
	}
	credential, exposed, err := readCredential(path)
	if err != nil {
		return fault.Wrap(fault.Internal, "The owner's credential file cannot be read. Nothing was changed.", err)
	}
	if !credential.Empty() {
		who, err := a.Authenticate(ctx, credential)
		switch {
		case err != nil && !fault.Is(err, fault.Unauthenticated):
			return err // the store's trouble is no reason to pair
		case err != nil || who.Scope != scope || who.Role != caller.Owner:
		case !exposed:
			return nil
		default:
			a.Log.Warn("the owner's credential file could be read by others; its device is revoked", "path", path, "device", who.Device)
			if err := a.Revoke(ctx, by, who.Device); err != nil {
				return err
			}
		}
	}
	d, fresh, err := a.Pair(ctx, by, "command line", caller.Owner, "")
	if err != nil {
		return err
	}
	if err := writeCredential(path, fresh); err != nil {
		undoing, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer stop()
		return errors.Join(fault.Wrap(fault.Internal, "The owner's credential file cannot be written. The new device was revoked.", err),
			a.Revoke(undoing, by, d.Fingerprint))
	}
	return nil
}

// readCredential reads the file, if it is one; exposed says that others could
// read it too. What is no regular file, or too long, is as good as missing.
func readCredential(path string) (credential secret.Text, exposed bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return secret.Text{}, false, nil
	case err != nil:
		return secret.Text{}, false, err
	case info.IsDir():
		return secret.Text{}, false, fmt.Errorf("%s is a folder", path)
	case !info.Mode().IsRegular():
		return secret.Text{}, false, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return secret.Text{}, false, err
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, maxCredential))
	if err != nil {
		return secret.Text{}, false, err
	}
	return secret.NewText(strings.TrimSpace(string(body))), info.Mode().Perm()&0o077 != 0, nil
}

// writeCredential replaces the file in one step, and syncs it and its folder.
func writeCredential(path string, credential secret.Text) error {
	dir := filepath.Dir(path)
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer f.Cleanup()
	if _, err := io.WriteString(f, credential.Reveal()+"\n"); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
