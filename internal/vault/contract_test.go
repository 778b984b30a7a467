package vault_test

import (
	"testing"

	"github.com/chaperone-agents/chaperone/internal/vault"
	"github.com/chaperone-agents/chaperone/internal/vault/vaulttest"
)

func TestContract(t *testing.T) {
	vaulttest.Run(t, func(c vault.Config) (vaulttest.Vault, error) { return vault.Open(c) })
}
