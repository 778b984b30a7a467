package guest

import (
	"net/http"
	"net/http/httputil"
	"net/url"
)

// SignedIn is an application behind a single sign-on: whoever asks is the
// owner of the cookie jar, whose cookies stay on this side. note, unless nil,
// sees every answer first.
func SignedIn(host, addr string, jar http.CookieJar, note func(*http.Response) error) http.Handler {
	here := &url.URL{Scheme: "https", Host: host, Path: "/"}
	return &httputil.ReverseProxy{
		// A browser that leaves a page breaks off what it was still asking for.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: addr})
			p.Out.Host = host
			p.Out.Header.Set("X-Forwarded-Proto", "https")
			p.Out.Header.Del("Accept-Encoding") // so that note can read the page
			p.Out.Header.Del("Cookie")
			for _, c := range jar.Cookies(here) {
				p.Out.AddCookie(c)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			jar.SetCookies(here, r.Cookies())
			if note != nil {
				if err := note(r); err != nil {
					return err
				}
			}
			r.Header.Del("Set-Cookie")
			return nil
		},
	}
}
