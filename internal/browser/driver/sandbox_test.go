package driver

import (
	"maps"
	"os"
	"testing"
)

// A browser without its sandbox is refused (EPH-01): each table differs from a
// good one in one process.
func TestSandboxIsJudged(t *testing.T) {
	good := map[int]processInfo{
		10: {parent: 1, seccomp: "0", depth: 1},                  // browser
		11: {parent: 10, seccomp: "0", depth: 1},                 // zygote
		12: {parent: 11, seccomp: "2", depth: 3, renderer: true}, // renderer
		90: {parent: 1, seccomp: "0", depth: 1, renderer: true},  // of another browser
	}
	if err := judgeSandbox(good, 10); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(map[int]processInfo){
		"no seccomp filter":  func(m map[int]processInfo) { m[12] = processInfo{parent: 11, seccomp: "0", depth: 3, renderer: true} },
		"same pid namespace": func(m map[int]processInfo) { m[12] = processInfo{parent: 11, seccomp: "2", depth: 1, renderer: true} },
		"unreadable status":  func(m map[int]processInfo) { m[12] = processInfo{parent: 11, renderer: true} },
		"one bad of two":     func(m map[int]processInfo) { m[13] = processInfo{parent: 11, seccomp: "1", depth: 3, renderer: true} },
		"no renderer":        func(m map[int]processInfo) { delete(m, 12) },
		"no browser":         func(m map[int]processInfo) { delete(m, 10) },
	} {
		m := maps.Clone(good)
		change(m)
		if judgeSandbox(m, 10) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if verifySandbox(os.Getpid()) == nil {
		t.Error("this test is no sandboxed browser, and was accepted as one")
	}
}

// EPH-02: what a frame or a resource may be.
func TestPublicResource(t *testing.T) {
	for raw, want := range map[string]bool{
		"https://cdn.example/a%zz?q#f": true, "https://cdn.example:443/": true, "data:text/plain,x": true, "blob:https://wiki.example/1": true,
		"http://cdn.example/": false, "https://127.0.0.1/": false, "https://[::1]/": false, "https://localhost/": false, "https://cdn.example:8443/": false,
		"https://u:p@cdn.example/": false, "file:///etc/passwd": false, "ftp://cdn.example/": false, "blob:null/1": false, "https://169.254.169.254/": false,
		"https://0x7f000001/": false, "chrome://version/": false, "": false, "https://": false, "https://cdn.example\\@wiki.example/": false,
	} {
		if got := publicResource(raw); got != want {
			t.Errorf("%q: %v, want %v", raw, got, want)
		}
	}
}
