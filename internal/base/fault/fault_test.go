package fault

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// CODE-01: the list is closed. Every code that the source declares is on it,
// once, and nothing else is.
func TestCodes(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "fault.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[Code]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := v.Type.(*ast.Ident); ok && kind.Name == "Code" {
			s, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil || declared[Code(s)] {
				t.Errorf("%s is declared twice, or not a string", v.Names[0].Name)
			}
			declared[Code(s)] = true
		}
		return true
	})
	listed := map[Code]bool{}
	for _, c := range Codes() {
		if listed[c] || !declared[c] || !Known(c) {
			t.Errorf("%s is listed twice, not declared, or not known", c)
		}
		listed[c] = true
	}
	if len(declared) != len(listed) || len(listed) < 20 {
		t.Errorf("%d codes are declared and %d listed", len(declared), len(listed))
	}
	for _, c := range []Code{"", "internal", "INTERNAL_ERROR", "tool.browser.", "tool.browser.url_disallowed "} {
		if Known(c) {
			t.Errorf("%q is known", c)
		}
	}
}

func TestCodeOf(t *testing.T) {
	e := New(NotFound, "There is none.")
	for _, x := range []struct {
		err  error
		want Code
	}{
		{nil, ""},
		{errors.New("x"), Internal},
		{e, NotFound},
		{fmt.Errorf("more: %w", e), NotFound},
		{errors.Join(errors.New("x"), e), NotFound},
		{Wrap(Conflict, "Taken.", e), Conflict}, // the outermost decides
	} {
		if got := CodeOf(x.err); got != x.want {
			t.Errorf("CodeOf(%v) = %q", x.err, got)
		}
		for _, c := range Codes() {
			if Is(x.err, c) != (x.err != nil && c == x.want) {
				t.Errorf("Is(%v, %s) is wrong", x.err, c)
			}
		}
	}
	if Is(nil, "") {
		t.Error("no error has a code")
	}
}

// REL-02, LHTTP-05: the cause stays inside; what is shown keeps code, sentence
// and whether to retry.
func TestPublic(t *testing.T) {
	cause := errors.New("<script>alert('from the page')</script>")
	inside := Wrap(SiteUnreachable, "The page did not load.", cause).Retry()
	for _, err := range []error{inside, fmt.Errorf("calling: %w", inside)} {
		p := Public(err)
		if p.Code != SiteUnreachable || p.Public != "The page did not load." || !p.Retryable || p.Err != nil {
			t.Errorf("%+v", p)
		}
		if strings.Contains(p.Error(), "script") || errors.Is(p, cause) {
			t.Errorf("the cause shows: %v", p)
		}
	}
	if !errors.Is(inside, cause) || !strings.Contains(inside.Error(), "script") {
		t.Error("inside the process the cause is lost")
	}
	if p := Public(cause); p.Code != Internal || strings.Contains(p.Error(), "script") || p.Retryable {
		t.Errorf("a plain error shows as %v", p)
	}
	if e := Newf(Conflict, "It is %s already.", "used"); e.Public != "It is used already." || e.Error() != "conflict: It is used already." {
		t.Errorf("%v", e)
	}
}
