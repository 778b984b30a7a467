package archtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// loadPackages asks the Go tool for every package of the module in root, with
// what the programs link.
func loadPackages(root string) ([]pkg, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Imports,TestImports,XTestImports,Deps", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	var pkgs []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Name                         string
			Imports, TestImports, XTestImports, Deps []string
		}
		if err := d.Decode(&p); err == io.EOF {
			return pkgs, nil
		} else if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, pkg{
			path: p.ImportPath, imports: p.Imports, deps: p.Deps,
			testImports: append(p.TestImports, p.XTestImports...),
		})
	}
}

// loadSources reads the text files that git knows or would take.
func loadSources(root string) ([]source, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var files []source
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		body, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if os.IsNotExist(err) { // deleted, not yet committed
			continue
		}
		if err != nil {
			return nil, err
		}
		if utf8.Valid(body) && !bytes.ContainsRune(body, 0) {
			files = append(files, source{name: name, text: string(body)})
		}
	}
	return files, nil
}

// byFolder groups the Go files of this module by their folder.
func byFolder(files []source) map[string][]source {
	out := map[string][]source{}
	for _, f := range files {
		if path.Ext(f.name) == ".go" && !within(f.name, "tools") && !strings.Contains(f.name, "/testdata/") {
			out[path.Dir(f.name)] = append(out[path.Dir(f.name)], f)
		}
	}
	return out
}
