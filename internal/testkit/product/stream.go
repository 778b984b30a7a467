package product

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"testing"
)

// stream runs a command and sends the first JSON value it prints as soon as it
// is there.
func stream(t testing.TB, first chan<- string, name string, args ...string) Result {
	cmd := exec.CommandContext(t.Context(), name, args...)
	var rest, errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Result{Err: err.Error(), Status: -1}
	}
	if err := cmd.Start(); err != nil {
		return Result{Err: err.Error(), Status: -1}
	}
	d := json.NewDecoder(io.TeeReader(out, &rest))
	var value json.RawMessage
	if d.Decode(&value) == nil {
		first <- string(value)
	}
	io.Copy(&rest, out)
	cmd.Wait() // the status says how it ended
	return Result{Out: rest.String(), Err: errs.String(), Status: cmd.ProcessState.ExitCode()}
}
