// Command chaperone is the owner's command line.
package main

import (
	"os"

	"github.com/chaperone-agents/chaperone/internal/daemon/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
