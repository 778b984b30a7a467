package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strconv"
	"strings"
)

// source is one file of the tree.
type source struct {
	name string // relative to the module, with slashes
	text string
}

// impure is what rules may not import: they take values and `now`, and answer
// with values.
var impure = []string{
	"bufio", "context", "crypto/rand", "database/sql", "internal/base/devmode", "internal/base/ident", "io/fs", "log",
	"math/rand", "net", "os", "path/filepath", "runtime", "sync", "syscall", "testing", "unsafe",
}

// clock is what rules may not call in package time.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

// checkPackage reads the Go files of one folder.
func checkPackage(files []source) []string {
	fset := token.NewFileSet()
	var out []string
	var parsed []*ast.File
	commented, cites, tests, generated := false, false, false, 0
	for _, f := range files {
		file, err := parser.ParseFile(fset, f.name, f.text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			out = append(out, err.Error())
			continue
		}
		if ast.IsGenerated(file) {
			generated++
			continue
		}
		if strings.HasSuffix(f.name, "_test.go") {
			tests = true
			cites = cites || requirementID.MatchString(f.text)
			continue
		}
		parsed = append(parsed, file)
		commented = commented || file.Doc != nil
		out = append(out, checkInits(f.name, file)...)
		if !testOnly(path.Dir(f.name)) {
			out = append(out, checkBanned(f.name, file)...)
		}
		if within(f.name, "internal/rules") {
			out = append(out, checkPure(f.name, file)...)
		}
	}
	if len(files) == 0 || generated == len(files) {
		return out
	}
	dir := path.Dir(files[0].name)
	if len(parsed) > 0 && !commented {
		out = append(out, dir+" has no package comment")
	}
	if tests && !cites && !testOnly(dir) {
		out = append(out, dir+" has tests, and none of them cites a requirement")
	}
	return append(out, checkGlobals(fset, parsed)...)
}

func checkInits(name string, file *ast.File) []string {
	var out []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			out = append(out, name+" has a func init")
		}
	}
	return out
}

func checkPure(name string, file *ast.File) []string {
	var out []string
	timeName := ""
	for _, i := range file.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		rel, ours := ourPath(p)
		if !ours {
			rel = p
		}
		if p == "log/slog" && onlyMasks(file) {
			continue
		}
		if slices.ContainsFunc(impure, func(dir string) bool { return within(rel, dir) }) {
			out = append(out, fmt.Sprintf("%s imports %s, and rules are pure", name, p))
		}
		if p == "time" {
			timeName = "time"
			if i.Name != nil {
				timeName = i.Name.Name
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == timeName && slices.Contains(clock, s.Sel.Name) {
				out = append(out, fmt.Sprintf("%s uses time.%s, and rules are given the time", name, s.Sel.Name))
			}
		}
		return true
	})
	return out
}

// onlyMasks reports whether all that a file takes from log/slog is how a value
// of its own looks in a log: a mask needs no logger.
func onlyMasks(file *ast.File) bool {
	only := true
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "slog" {
				only = only && slices.Contains([]string{"Value", "StringValue", "LogValuer"}, s.Sel.Name)
			}
		}
		return true
	})
	return only
}

// checkGlobals finds package variables that change: those that a function
// assigns to, and those of a type that exists to be changed. Tables that are
// only read are no finding.
func checkGlobals(fset *token.FileSet, files []*ast.File) []string {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}}
	// Imports stay unresolved and their errors ignored: names of this package
	// resolve all the same, and only those matter here.
	scope, _ := conf.Check("p", fset, files, info)
	var out []string
	report := func(pos token.Pos, what string) {
		p := fset.Position(pos)
		out = append(out, fmt.Sprintf("%s:%d %s", p.Filename, p.Line, what))
	}
	assigned := func(e ast.Expr) {
		id := rootIdent(e)
		if id == nil || scope == nil {
			return
		}
		if v, ok := info.Uses[id].(*types.Var); ok && v.Parent() == scope.Scope() {
			report(id.Pos(), "changes the package variable "+id.Name)
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, l := range n.Lhs {
					assigned(l)
				}
			case *ast.IncDecStmt:
				assigned(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					assigned(n.X)
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") && len(n.Args) > 0 {
					assigned(n.Args[0])
				}
			}
			return true
		})
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				if t := mutableType(v); t != "" {
					report(v.Pos(), fmt.Sprintf("declares the package variable %s of type %s", v.Names[0].Name, t))
				}
			}
		}
	}
	return out
}

// rootIdent is x in x, x.f, x[i] and *x.
func rootIdent(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// mutableType names the type of a variable that only makes sense when it
// changes: a lock, a counter, a buffer, a channel.
func mutableType(v *ast.ValueSpec) string {
	exprs := append([]ast.Expr{v.Type}, v.Values...)
	for _, e := range exprs {
		if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
			e = u.X
		}
		switch x := e.(type) {
		case *ast.CompositeLit:
			e = x.Type
		case *ast.CallExpr: // make(chan T), new(T)
			if f, ok := x.Fun.(*ast.Ident); ok && (f.Name == "make" || f.Name == "new") && len(x.Args) > 0 {
				e = x.Args[0]
			}
		case *ast.IndexExpr: // atomic.Pointer[T]
			e = x.X
		}
		switch x := e.(type) {
		case *ast.ChanType:
			return "chan"
		case *ast.SelectorExpr:
			if p, ok := x.X.(*ast.Ident); ok && slices.Contains([]string{"sync", "atomic", "bytes"}, p.Name) {
				return p.Name + "." + x.Sel.Name
			}
		}
	}
	return ""
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, fmt.Errorf("not resolved") }
