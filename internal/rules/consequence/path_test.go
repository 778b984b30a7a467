package consequence

import (
	"strings"
	"testing"
)

// segmentRows: an address is classified like a label (section 2.6, and a
// navigation straight to a payment address).
func segmentRows() []expectation {
	var out []expectation
	for path, want := range map[string]Consequence{
		"/checkout": Payment, "/shop/item": Purchase, "/account/delete": SecurityChange, "/wiki/page/delete": Destructive,
		"/users/sign_in": AuthenticationChange, "/log-out": AuthenticationChange, "/addToCart": Purchase, "/doLogOut": AuthenticationChange,
		"/%63heckout": Payment, "/%2563heckout": Payment, "/%252563heckout": Payment, "/p%C3%A0y": Payment, "/%D1%83%D0%B4%D0%B0%D0%BB%D0%B8%D1%82%D1%8C": Destructive,
		"/%E2%82%AC5": Payment, "/a%2Fcheckout": Payment, "/check%20out": Payment, "/%F0%9F%85%9F%F0%9F%85%90%F0%9F%85%A8": Payment,
		"/wiki/Main_Page": Unknown, "/lesson/3": Unknown, "/": Unknown, "/admin": Unknown, "/%ff": Unknown, "/100%": Unknown, "/%zz": Unknown,
	} {
		out = append(out, expectation{"navigation", navigate(path), want})
	}
	return out
}

// Section 2.6: segments that no grant covers.
func TestSensitiveSegment(t *testing.T) {
	for _, s := range strings.Fields(`admin Admin ADMIN api auth oauth oauth2 sso pricing plus inbox compose admin-panel api.php %61dmin
		%2561dmin аdmin checkout Checkout my-cart sign_in login.html accountSettings %24 €5 %E2%82%AC pay%70al einstellungen %E8%AE%BE%E7%BD%AE
		%` + strings.Repeat("25", 8) + `41 ` + strings.Repeat("a", maxText+1)) {
		if !SensitiveSegment(s) {
			t.Errorf("%.40q is not sensitive", s)
		}
	}
	for _, s := range append(strings.Fields(`wiki lesson lessons learn articles news 2024 index.html search docs blog category video watch
		products item en de es home about p r questions tagged Main_Page history adminton apiary authors
		surplus composer 100% %zz user u`), "", ".", "..") {
		if SensitiveSegment(s) {
			t.Errorf("%q is sensitive", s)
		}
	}
}

func TestSensitivePath(t *testing.T) {
	for _, p := range []string{"/admin", "/a/b/checkout", "/a/%63heckout/b", "/a//login/", "/" + strings.Repeat("a/", maxPath)} {
		if !SensitivePath(p) {
			t.Errorf("%.40q is not sensitive", p)
		}
	}
	for _, p := range []string{"", "/", "/lesson", "/lesson/3/", "/wiki/Main_Page"} {
		if SensitivePath(p) {
			t.Errorf("%q is sensitive", p)
		}
	}
}

// Section 2.6: on segment boundaries, case-sensitive, and no dot segment in any
// form.
func TestWithinPrefix(t *testing.T) {
	for _, c := range []struct {
		path, prefix string
		want         bool
	}{
		{"/lesson", "/lesson", true}, {"/lesson/", "/lesson", true}, {"/lesson/a/b", "/lesson", true}, {"/lesson/a", "/lesson/", true},
		{"/lesson", "/lesson/", true}, {"/x", "/", true}, {"/", "/", true}, {"/lesson/a%2Fb", "/lesson", true}, {"/lesson/a.b/...", "/lesson", true},
		{"/lessons", "/lesson", false}, {"/Lesson", "/lesson", false}, {"/les", "/lesson", false}, {"/a/lesson", "/lesson", false},
		{"/lesso%6e/a", "/lesson", false}, {"", "/lesson", false}, {"lesson/a", "/lesson", false}, {"/lesson/a", "", false}, {"/lesson/a", "lesson", false},
		{"/lesson/../admin", "/lesson", false}, {"/lesson/./a", "/lesson", false}, {"/lesson/..", "/lesson", false}, {"/lesson/%2e%2e/admin", "/lesson", false},
		{"/lesson/.%2E/admin", "/lesson", false}, {"/lesson/%2e/a", "/lesson", false}, {"/lesson/%252e%252e/a", "/lesson", false},
		{"/lesson/..%2fadmin", "/lesson", false}, {"/lesson/..%5cadmin", "/lesson", false}, {`/lesson/..\admin`, "/lesson", false},
		{"/lesson/..;/admin", "/lesson", false}, {"/lesson/..;x=1/admin", "/lesson", false}, {"/lesson/a", "/lesson/..", false},
		{"/lesson/" + "%" + strings.Repeat("25", 8) + "2e%2e", "/lesson", false}, {"/lesson/" + strings.Repeat("a", maxPath), "/lesson", false},
		{"//lesson/a", "/lesson", false},
	} {
		if got := WithinPrefix(c.path, c.prefix); got != c.want {
			t.Errorf("%.60q in %q: %v", c.path, c.prefix, got)
		}
	}
}
