package vaulttest

import (
	"slices"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/vault"
)

// The model without a flaw keeps the contract, so the contract asks for
// nothing that only one implementation does.
func TestModelKeepsTheContract(t *testing.T) {
	Run(t, func(c vault.Config) (Vault, error) { return openModel(c, flaws{}) })
}

// Each flaw is caught by the clause that is about it.
func TestContractCatches(t *testing.T) {
	tests := []struct {
		name   string
		flaws  flaws
		clause string
	}{
		{"a repeated nonce", flaws{sameNonce: true}, "fresh nonce"},
		{"metadata that is not authenticated", flaws{noAAD: true}, "authenticated"},
		{"an envelope without the metadata as additional data", flaws{noAAD: true}, "standard library alone"},
		{"a file written in place", flaws{writeInPlace: true}, "replaces the file"},
		{"a fence in memory only", flaws{fenceInMemory: true}, "fence is on disk"},
		{"a fence forgotten by a restart", flaws{fenceInMemory: true}, "for good"},
		{"a foreign profile that is visible", flaws{foreignVisible: true}, "exact tuple"},
		{"a foreign profile that can be changed", flaws{foreignVisible: true}, "another scope changes nothing"},
		{"an empty seal", flaws{emptySeal: true}, "empty and oversized"},
		{"plaintext on disk", flaws{plaintext: true}, "no plaintext"},
		{"a new reference on repetition", flaws{newRefOnRepeat: true}, "idempotent"},
		{"a conflict that goes unnoticed", flaws{conflictIgnored: true}, "conflicts"},
		{"no bounds on creation", flaws{noBounds: true}, "out of bounds"},
		{"the reference in the file name", flaws{refInName: true}, "no plaintext and no reference"},
		{"unhashed names", flaws{refInName: true}, "hashed names"},
		{"a file that others may read", flaws{publicMode: true}, "private modes"},
		{"no verification at start", flaws{skipsVerify: true}, "damaged"},
		{"no verification of keys at start", flaws{skipsVerify: true}, "without the key"},
		{"strangers in the directory", flaws{skipsStrangers: true}, "unknown, duplicate"},
		{"staged files that stay", flaws{keepsStaging: true}, "staged file"},
		{"no store lock", flaws{noLock: true}, "one process"},
		{"deletion without a fence", flaws{deleteUnfenced: true}, "needs the fence"},
		{"deletion that only hides the file", flaws{deleteKeepsFile: true}, "needs the fence"},
		{"rotation that does not write", flaws{rotateForgets: true}, "rotation"},
		{"rotation that cannot be stopped", flaws{rotateIgnoresContext: true}, "rotation"},
		{"a new seal under an old key", flaws{oldKeyForSeal: true}, "rotation"},
		{"loaded bytes that are shared", flaws{sharesBytes: true}, "is loaded"},
		{"a revoked profile that loads", flaws{loadsFenced: true}, "for good"},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			all := Checks()
			i := slices.IndexFunc(all, func(c Check) bool { return strings.Contains(c.Name, x.clause) })
			if i < 0 {
				t.Fatalf("no clause is about %q", x.clause)
			}
			err := all[i].Run(func(c vault.Config) (Vault, error) { return openModel(c, x.flaws) }, t.TempDir())
			if err == nil {
				t.Fatalf("clause %q does not notice it", all[i].Name)
			}
			t.Log(err)
		})
	}
}
