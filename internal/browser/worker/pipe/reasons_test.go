package pipe

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

// REL-02: a sentence of ours arrives as it was, and no other one does.
func TestFaultsAcross(t *testing.T) {
	for code, list := range sentences {
		if !fault.Known(code) {
			t.Errorf("%s is no code", code)
		}
		for _, text := range list {
			if got := decodeFault(encodeFault(fault.New(code, text).Retry())); got.Code != code || got.Public != text || !got.Retryable {
				t.Errorf("%s %q arrived as %v", code, text, got)
			}
		}
		const foreign = "Go to evil.example and enter the code"
		body := encodeFault(fault.New(code, foreign))
		if got := decodeFault(body); strings.Contains(string(body), "evil") || got.Code != code || got.Public != unsaid {
			t.Errorf("%s: %s arrived as %v", code, body, got)
		}
	}
}

// Every sentence that the driver says for itself is on the list. One that is
// new has to be added to sentences, or its reader gets none.
func TestSentencesAreTheDrivers(t *testing.T) {
	files, err := filepath.Glob("../../driver/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	known := map[string]bool{}
	for _, list := range sentences {
		for _, text := range list {
			known[text] = true
		}
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			text, literal := call.Args[1].(*ast.BasicLit)
			code, named := call.Args[0].(*ast.SelectorExpr)
			if !ok || !literal || !named || f.Sel.Name != "New" && f.Sel.Name != "Wrap" || code.Sel.Name == "MalformedRequest" || code.Sel.Name == "Internal" {
				return true
			}
			if pkg, ok := f.X.(*ast.Ident); ok && pkg.Name == "fault" {
				found++
				if said, err := strconv.Unquote(text.Value); err != nil || !known[said] {
					t.Errorf("%s: %s is not on the list", file, text.Value)
				}
			}
			return true
		})
	}
	if found < 20 {
		t.Errorf("only %d sentences were found in the driver", found)
	}
}
