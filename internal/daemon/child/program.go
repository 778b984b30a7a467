package child

import (
	"context"
	"log/slog"
	"os"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
)

// Program is the frame of a supervised program's main: a logger that names it,
// a context that ends as Context says, and development mode with its banner
// when devFile is not empty. It returns the exit status.
func Program(name string, supervised bool, devFile string, run func(context.Context, *devmode.Config, *slog.Logger) error) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("program", name)
	ctx, cancel := Context(supervised)
	defer cancel()
	var dev *devmode.Config
	var err error
	if devFile != "" {
		if dev, err = devmode.Load(devFile); err == nil {
			log.Warn(dev.Banner(name))
		}
	}
	if err == nil {
		err = run(ctx, dev, log)
	}
	if err != nil {
		log.Error("stopped", "cause", err)
		return 1
	}
	return 0
}
