package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
)

// bannedImports are packages that only some folders may import, or none.
var bannedImports = []struct {
	path string
	why  string
	only []string
}{
	{"log", "log through an injected slog.Logger", nil},
	{"math/rand", "randomness here is security: crypto/rand", nil},
	{"math/rand/v2", "randomness here is security: crypto/rand", nil},
	{"crypto/md5", "it is broken", nil},
	{"crypto/sha1", "it is broken", nil},
	{"crypto/des", "it is broken", nil},
	{"crypto/rc4", "it is broken", nil},
	{"os/exec", "only a few places start programs", []string{"internal/browser", "internal/daemon", "internal/archtest"}},
	{"unsafe", "only system calls need it", []string{"internal/browser/isolate"}},
	{"database/sql", "SQL is the store's", []string{"internal/store"}},
	{"crypto/aes", "sealing is the vault's", []string{"internal/vault"}},
	{"crypto/cipher", "sealing is the vault's", []string{"internal/vault"}},
	{"plugin", "programs are whole", nil},
	{"C", "programs are built without cgo", nil},
}

// bannedCalls are functions that no code but tests may use.
var bannedCalls = []struct {
	pkg   string
	names []string
	why   string
}{
	{"context", []string{"WithValue"}, "who is asking is a parameter"},
	{"log/slog", []string{"Debug", "Info", "Warn", "Error", "Log", "Default", "SetDefault", "With"}, "the logger is injected"},
	{"net/http", []string{"ListenAndServe", "ListenAndServeTLS", "HandleFunc", "Handle", "Get", "Post", "Head", "PostForm"}, "no global mux and no default client"},
}

// checkBanned applies both tables to one file that is no test.
func checkBanned(name string, file *ast.File) []string {
	var out []string
	local := map[string]string{} // name in this file -> import path
	for _, i := range file.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		short := path.Base(p)
		if i.Name != nil {
			short = i.Name.Name
		}
		local[short] = p
		for _, b := range bannedImports {
			if b.path == p && !slices.ContainsFunc(b.only, func(dir string) bool { return within(name, dir) }) {
				out = append(out, fmt.Sprintf("%s imports %s: %s", name, p, b.why))
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := s.X.(*ast.Ident)
		if !ok {
			return true
		}
		for _, b := range bannedCalls {
			if local[x.Name] == b.pkg && slices.Contains(b.names, s.Sel.Name) {
				out = append(out, fmt.Sprintf("%s uses %s.%s: %s", name, b.pkg, s.Sel.Name, b.why))
			}
		}
		return true
	})
	return out
}
