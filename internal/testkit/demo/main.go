// Command demo shows the main job from end to end on a running product: the
// owner at the real console and sign-in page in a browser, the agent over MCP,
// and a website whose own record says what really happened. It checks every
// step, leaves a page with pictures, and its exit status tells success. It
// covers the acceptance of GATE-01 on the practice site and on MediaWiki.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/mediawiki"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

// strangers are the users that browsers and PHP run as when this is root.
const (
	personUID = 61781
	phpUID    = 61782
)

type options struct {
	practice, wiki bool
	out, bin       string
}

func main() {
	var o options
	flag.BoolVar(&o.practice, "practice", false, "on the practice site")
	flag.BoolVar(&o.wiki, "mediawiki", false, "on MediaWiki")
	flag.StringVar(&o.out, "out", "out/demo", "where the page and the pictures go")
	flag.StringVar(&o.bin, "bin", "bin", "folder of the programs")
	flag.Parse()
	if !o.practice && !o.wiki {
		o.practice = true
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1)
	}
}

// run reports whether every step succeeded; an error means that the
// demonstration itself could not be set up or its page not be written.
func run(ctx context.Context, o options) (ok bool, err error) {
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return false, err
	}
	temp, err := os.MkdirTemp("", "chaperone-demo-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o711); err != nil { // PHP's user must get to its own folder
		return false, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))

	hosts := map[string]http.Handler{}
	var wiki *mediawiki.Wiki
	if o.wiki {
		if wiki, err = startWiki(ctx, temp, log); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, wiki.Close()) }()
		hosts[wiki.Host] = wiki.Handler()
	}
	site, err := practice.Start(practice.Config{Hosts: hosts, Log: log})
	if err != nil {
		return false, err
	}
	defer site.Close()
	dev, err := site.DevFile(temp)
	if err != nil {
		return false, err
	}

	owner, err := newOwner(ctx, dev)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, owner.close()) }()

	report := newReport(o.out)
	var subjects []subject
	if o.practice {
		subjects = append(subjects, practiceSubject(site))
	}
	if o.wiki {
		subjects = append(subjects, wikiSubject(wiki))
	}
	ok = true
	for i, s := range subjects {
		st := &story{subject: s, site: site, owner: owner, bin: bin, dev: dev, data: filepath.Join(temp, fmt.Sprint("data", i)), report: report}
		ok = st.tell(ctx) && ok
	}
	page, err := report.write()
	if err != nil {
		return false, err
	}
	fmt.Println("\nPictures and figures:", page)
	return ok, nil
}

func startWiki(ctx context.Context, temp string, log *slog.Logger) (*mediawiki.Wiki, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(temp, "wiki")
	if err := os.Mkdir(dir, 0o711); err != nil {
		return nil, err
	}
	fmt.Println("Installing MediaWiki into a temporary folder …")
	began := time.Now()
	w, err := mediawiki.Start(ctx, mediawiki.Config{
		Dir: dir, Cache: filepath.Join(cache, "chaperone-testkit"), UID: stranger(phpUID), TwoSteps: true, Log: log,
	})
	if err == nil {
		fmt.Printf("MediaWiki answers after %.1f s\n", time.Since(began).Seconds())
	}
	return w, err
}

// stranger is the uid if this is root, and 0 for "as I am" otherwise.
func stranger(uid int) int {
	if os.Geteuid() == 0 {
		return uid
	}
	return 0
}
