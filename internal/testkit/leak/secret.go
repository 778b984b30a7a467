package leak

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf16"

	_ "modernc.org/sqlite" // registers the driver that reads databases below
)

// Hit is one place where a secret was found. It does not repeat the secret.
type Hit struct {
	Where string // path, table of a database, or process
	Which int    // index into the secrets
	Form  string // plain, base64, hex, ...
}

func (h Hit) String() string { return fmt.Sprintf("secret %d (%s) in %s", h.Which, h.Form, h.Where) }

// form is one spelling of a secret.
type form struct {
	which int
	name  string
	bytes []byte
}

// forms spells every secret in the ways that programs store text. Secrets
// under 6 bytes would be found by chance and are an error.
func forms(secrets []string) ([]form, error) {
	var out []form
	for i, s := range secrets {
		if len(s) < 6 {
			return nil, fmt.Errorf("leak: secret %d is too short to look for", i)
		}
		b := []byte(s)
		add := func(name string, spelled []byte) {
			if name == "plain" || !bytes.Equal(spelled, b) {
				out = append(out, form{i, name, spelled})
			}
		}
		add("plain", b)
		add("hex", []byte(hex.EncodeToString(b)))
		add("HEX", bytes.ToUpper([]byte(hex.EncodeToString(b))))
		add("URL", []byte(url.QueryEscape(s)))
		if quoted, err := json.Marshal(s); err == nil {
			add("JSON", quoted[1:len(quoted)-1])
		}
		wide := utf16.Encode([]rune(s))
		little := make([]byte, 0, 2*len(wide))
		for _, c := range wide {
			little = append(little, byte(c), byte(c>>8))
		}
		add("UTF-16", little)
		// In base64 a text looks different at each of three offsets; the
		// characters that its neighbours share are left out.
		for off := range 3 {
			enc := base64.RawStdEncoding.EncodeToString(append(make([]byte, off), b...))
			from, to := (off*8+5)/6, len(enc)-1
			if to-from >= 6 {
				add("base64", []byte(enc[from:to]))
				add("base64url", []byte(strings.NewReplacer("+", "-", "/", "_").Replace(enc[from:to])))
			}
		}
	}
	return out, nil
}

// Find looks for the secrets in every file below the folder: as bytes, inside
// gzip, and in the rows of SQLite databases, where a long value may be torn
// over pages. Secrets have at least 6 bytes each.
func Find(ctx context.Context, folder string, secrets []string) ([]Hit, error) {
	all, err := forms(secrets)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(folder); err != nil { // or a wrong path would look clean
		return nil, fmt.Errorf("leak: %w", err)
	}
	var hits []Hit
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // removed while we look: gone is fine
			return nil
		}
		if err != nil {
			return err
		}
		for _, f := range all {
			if f.name == "plain" && strings.Contains(d.Name(), string(f.bytes)) {
				hits = append(hits, Hit{path + " (its name)", f.which, f.name})
			}
		}
		if !d.Type().IsRegular() {
			return nil
		}
		body, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		hits = append(hits, match(path, body, all)...)
		if r, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
			inside, _ := io.ReadAll(io.LimitReader(r, 256<<20)) // what can be read of a torn one
			hits = append(hits, match(path+" (inside gzip)", inside, all)...)
		}
		if bytes.HasPrefix(body, []byte("SQLite format 3\x00")) {
			rows, err := findRows(ctx, path, all)
			if err != nil {
				return err
			}
			hits = append(hits, rows...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("leak: %w", err)
	}
	return hits, nil
}

func match(where string, body []byte, all []form) []Hit {
	var hits []Hit
	for _, f := range all {
		if bytes.Contains(body, f.bytes) {
			hits = append(hits, Hit{where, f.which, f.name})
		}
	}
	return hits
}

// findRows reads a copy of the database and its log, so that the original is
// neither locked nor changed.
func findRows(ctx context.Context, path string, all []form) ([]Hit, error) {
	dir, err := os.MkdirTemp("", "leak-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for _, suffix := range []string{"", "-wal"} {
		body, err := os.ReadFile(path + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "copy"+suffix), body, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "copy"))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	tables, err := column(ctx, db, `SELECT name FROM sqlite_schema WHERE type = 'table'`)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var hits []Hit
	for _, t := range tables {
		quoted := `"` + strings.ReplaceAll(t, `"`, `""`) + `"`
		values, err := column(ctx, db, "SELECT * FROM "+quoted)
		if err != nil {
			return nil, fmt.Errorf("%s: table %s: %w", path, t, err)
		}
		// Values are joined by a byte that no secret has.
		hits = append(hits, match(path+" (table "+t+")", []byte(strings.Join(values, "\x00")), all)...)
	}
	return hits, nil
}

// column returns every value of every row as text.
func column(ctx context.Context, db *sql.DB, query string) ([]string, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out []string
	for rows.Next() {
		values := make([]sql.RawBytes, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		for _, v := range values {
			out = append(out, string(v))
		}
	}
	return out, rows.Err()
}

// FindInProcesses looks for the secrets in the command lines and environments
// of the processes that are meant.
func FindInProcesses(secrets []string, which Which) ([]Hit, error) {
	all, err := forms(secrets)
	if err != nil {
		return nil, err
	}
	alive, err := Alive(which)
	if err != nil {
		return nil, err
	}
	var hits []Hit
	for _, p := range alive {
		for _, file := range []string{"cmdline", "environ"} {
			body, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.PID, file))
			if err != nil {
				continue // ended meanwhile, or another user's
			}
			hits = append(hits, match(fmt.Sprintf("%s of process %d (%s)", file, p.PID, p.Name), body, all)...)
		}
	}
	return hits, nil
}

// NoSecret reports every place below the folders that holds one of the secrets.
func NoSecret(t Reporter, secrets []string, folders ...string) {
	t.Helper()
	for _, f := range folders {
		hits, err := Find(context.Background(), f, secrets)
		if err != nil {
			t.Errorf("%v", err)
		}
		for _, h := range hits {
			t.Errorf("%v", h)
		}
	}
}
