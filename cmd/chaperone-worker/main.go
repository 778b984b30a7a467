// Command chaperone-worker holds one browser, with one session, for the
// isolated browser service. It is started by chaperone-browserd and by nobody
// else (TRUST-04).
package main

import (
	"os"

	"github.com/chaperone-agents/chaperone/internal/daemon/workerd"
)

func main() { os.Exit(workerd.Run(os.Args)) }
