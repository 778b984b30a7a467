// Command classbench measures the consequence classifier on labels that people
// translated for real programs: MediaWiki, Redmine, Roundcube, Tryton and
// Miniflux. The key of a message tells its class (keys.go), the value is the
// label; both are read from the packages at run time and nothing of them is
// kept (CLS-01, CLS-04, CLS-06).
//
// Half of the keys, by a hash, were used to tune the vocabularies: their misses
// were read. The misses of the other half were read in English only, to correct
// keys with a wrong class. Single words that one language's vocabulary wrongly
// hits in another were looked for in all messages, so the false alarms of the
// held-out half are less held out than its recall.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

type options struct {
	cache, misses string
	limit         time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.cache, "cache", defaultCache(), "folder that keeps the packages between runs")
	flag.StringVar(&o.misses, "misses", "", "also list the misses and false alarms of the tuning half, of this language or of 'all'")
	flag.DurationVar(&o.limit, "limit", 8*time.Minute, "when to give up")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "classbench:", err)
		cancel()
		stop()
		os.Exit(1)
	}
}

// defaultCache is the folder that the other benches keep their packages in.
func defaultCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "chaperone-testkit")
}

func run(ctx context.Context, o options) (err error) {
	if o.cache == "" {
		return errors.New("there is no cache folder; name one with -cache")
	}
	temp, err := os.MkdirTemp("", "classbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	labels, err := collect(ctx, o.cache, temp)
	if err != nil {
		return err
	}
	r := measure(labels)
	r.print(os.Stdout)
	if o.misses != "" {
		printMisses(os.Stdout, labels, o.misses)
	}
	timing(os.Stdout, labels)
	return nil
}
