package vault

import (
	"errors"
	"fmt"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

// stagePrefix marks a file that is being written.
const stagePrefix = ".profile-stage-"

// load fills the index from the directory and verifies every tag.
func (v *Vault) load() error {
	names, err := v.disk.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case name == lockName:
			if _, err := v.disk.Read(name, 0); err != nil {
				return err
			}
		case strings.HasPrefix(name, stagePrefix):
			if err := v.disk.Remove(name); err != nil {
				return err
			}
		case strings.HasSuffix(name, fileSuffix):
			if err := v.admit(name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		default:
			return fmt.Errorf("%q does not belong in the store", name)
		}
	}
	return nil
}

// admit verifies one envelope and adds it to the index.
func (v *Vault) admit(name string) error {
	e, plaintext, err := v.verify(name)
	if err != nil {
		return err
	}
	clear(plaintext)
	if v.byID[e.Metadata.ProfileID] != nil {
		return errors.New("another envelope is of the same profile")
	}
	x := &entry{meta: e.Metadata, nonce: string(e.Nonce), fenced: e.Metadata.Revoked}
	v.byID[e.Metadata.ProfileID], v.byRef[e.Metadata.Ref] = x, x
	return nil
}

func (v *Vault) verify(name string) (envelope, []byte, error) {
	data, err := v.disk.Read(name, maxEnvelope)
	if err != nil {
		return envelope{}, nil, err
	}
	e, err := parse(data)
	if err != nil {
		return e, nil, err
	}
	if fileName(e.Metadata.Ref) != name {
		return e, nil, errors.New("it has the name of another reference")
	}
	key, err := v.keys.Key(e.Metadata.KeyVersion)
	if err != nil {
		return e, nil, err
	}
	defer key.Wipe()
	plaintext, err := e.open(key)
	return e, plaintext, err
}

// read opens the envelope of an entry. The caller holds files.
func (v *Vault) read(e *entry) (secret.Bytes, error) {
	found, plaintext, err := v.verify(fileName(e.meta.Ref))
	if err == nil && string(found.Nonce) != e.nonce {
		clear(plaintext)
		err = errors.New("it is not the envelope that was written last")
	}
	if err != nil {
		return secret.Bytes{}, fault.Wrap(fault.Internal, "The sealed session cannot be opened. It was not changed.", err)
	}
	return secret.NewBytes(plaintext), nil
}

// replace writes a new envelope over the one of an entry. The caller holds files.
func (v *Vault) replace(e *entry, meta metadata, plaintext []byte) error {
	nonce, err := v.write(meta, plaintext, true)
	if nonce != "" {
		v.index.Lock()
		e.meta, e.nonce = meta, nonce
		v.index.Unlock()
	}
	return err
}

// write stages, syncs and names an envelope: over the existing one, or only
// where there is none (STORE-08). A nonce says that the envelope has its name,
// also beside an error.
func (v *Vault) write(meta metadata, plaintext []byte, over bool) (nonce string, err error) {
	key, err := v.keys.Key(meta.KeyVersion)
	if err != nil {
		return "", unwritten(err)
	}
	defer key.Wipe()
	data, nonce, err := seal(meta, plaintext, key)
	if err != nil {
		return "", unwritten(err)
	}
	staged := stagePrefix + ident.Hex(16)
	if err := v.disk.Stage(staged, data); err != nil {
		return "", unwritten(err)
	}
	name := fileName(meta.Ref)
	if over {
		err = v.disk.Rename(staged, name)
	} else {
		err = v.disk.Link(staged, name)
	}
	if err != nil {
		return "", unwritten(errors.Join(err, v.disk.Remove(staged)))
	}
	if !over {
		// A staging name that stays is removed at the next start.
		_ = v.disk.Remove(staged)
	}
	return nonce, v.sync()
}

// sync makes names durable. After a failure nobody knows what a power cut
// would leave, so the vault stops until it is opened again.
func (v *Vault) sync() error {
	if err := v.disk.Sync(); err != nil {
		v.broken = fmt.Errorf("directory sync: %w", err)
		return unusable(v.broken)
	}
	return nil
}
