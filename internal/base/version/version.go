// Package version is the version that every program answers to --version with.
package version

import "runtime/debug"

// value is set by the linker in `make build`.
var value string

// String is the version of this build: what the linker set, otherwise the
// module version or the commit that the Go tool recorded, otherwise "devel".
func String() string {
	if value != "" {
		return value
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "devel"
}
