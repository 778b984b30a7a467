package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// program is what one program may never link: what it cannot link, it cannot
// leak. A folder stands for everything below it.
type program struct {
	dir    string
	never  []string // folders of this module
	others []string // import paths of other modules and of the standard library; "/..." is everything below, too
}

// programs says who holds what (TRUST-04): keys and material stay with the
// isolated service, decisions and metadata with the orchestrator, one browser
// with each worker, and nothing with the owner's command line.
var programs = []program{
	{
		dir: "cmd/chaperoned",
		never: []string{
			"internal/vault", "internal/app/browserd",
			"internal/browser/cdp", "internal/browser/driver", "internal/browser/worker",
			"internal/browser/isolate", "internal/browser/egress", "internal/browser/pagejs",
		},
	},
	{
		dir: "cmd/chaperone-browserd",
		never: []string{
			"internal/store", "internal/app/broker", "internal/app/owner", "internal/app/access",
			"internal/edge/ownerapi", "internal/edge/mcpserver", "internal/edge/consoleweb",
		},
		others: []string{"database/sql", "modernc.org/sqlite/...", "github.com/modelcontextprotocol/go-sdk/..."},
	},
	{
		dir:    "cmd/chaperone-worker",
		never:  []string{"internal/vault", "internal/store", "internal/app", "internal/edge", "client"},
		others: []string{"database/sql", "modernc.org/sqlite/..."},
	},
	{
		dir:    "cmd/chaperone",
		never:  []string{"internal/store", "internal/vault", "internal/app", "internal/browser"},
		others: []string{"database/sql", "modernc.org/sqlite/..."},
	},
}

// neverAnywhere is linked by no program.
var neverAnywhere = []string{"testing", "net/http/pprof", "expvar", "plugin"}

// checkPrograms applies the table of programs to what they link. A program
// that is in the tree but not in the table is a finding too.
func checkPrograms(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		rel := relative(p.path)
		if !within(rel, "cmd") {
			continue
		}
		rule, known := programOf(rel)
		if !known {
			out = append(out, rel+" is a program without a row in the table of forbidden imports")
			continue
		}
		for _, d := range p.deps {
			if forbidden(rule, d) {
				out = append(out, fmt.Sprintf("%s links %s", rel, d))
			}
		}
	}
	return out
}

func programOf(rel string) (program, bool) {
	for _, p := range programs {
		if p.dir == rel {
			return p, true
		}
	}
	return program{}, false
}

func forbidden(rule program, dep string) bool {
	if rel, ours := ourPath(dep); ours {
		if testOnly(rel) {
			return true
		}
		for _, dir := range rule.never {
			if within(rel, dir) {
				return true
			}
		}
		return false
	}
	for _, other := range slices.Concat(neverAnywhere, rule.others) {
		if tree, all := strings.CutSuffix(other, "/..."); dep == other || all && within(dep, tree) {
			return true
		}
	}
	return false
}
