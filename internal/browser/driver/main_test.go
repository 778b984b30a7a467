package driver_test

import (
	"log/slog"
	"os"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
)

// Most tests spend their time waiting for a page to come to rest, so those that
// look at one browser only are parallel: at most GOMAXPROCS of them at a time.
func TestMain(m *testing.M) { os.Exit(chromiumtest.Main(m)) }

func config(t testing.TB, s *chromiumtest.Site, origins ...string) driver.Config {
	t.Helper()
	allowed, err := site.ParseOrigins(origins)
	if err != nil {
		t.Fatal(err)
	}
	return driver.Config{
		Origins: allowed, Proxy: s.Proxy, Home: chromiumtest.Home(t), Chromium: chromiumtest.Chromium(t),
		Xvfb: chromiumtest.Xvfb(t), TrustedCA: s.CA, Log: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) { w.t.Log(string(b)); return len(b), nil }

func launch(t testing.TB, c driver.Config) *driver.Page {
	t.Helper()
	p, err := driver.Launch(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func parse(t testing.TB, s string) site.URL {
	t.Helper()
	u, err := site.ParseURL(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
