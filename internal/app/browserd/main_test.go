package browserd_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Nothing that a service started outlives its Shutdown.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
