package vault

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

var sizes = []struct {
	name  string
	bytes int
}{{"100KiB", 100 << 10}, {"4MiB", 4 << 20}}

func BenchmarkSeal(b *testing.B) {
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			v := mustOpen(b, newConfig(b, b.TempDir()))
			r := mustCreate(b, v)
			text := secret.NewBytes(make([]byte, size.bytes))
			b.SetBytes(int64(size.bytes))
			for b.Loop() {
				if err := v.Seal(owner, r.ProfileID, r.Ref, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWriteAndSync is what Seal is measured against: the same number of
// bytes written and synced, and nothing else.
func BenchmarkWriteAndSync(b *testing.B) {
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			path, data := filepath.Join(b.TempDir(), "file"), make([]byte, size.bytes*4/3)
			b.SetBytes(int64(size.bytes))
			for b.Loop() {
				f, err := os.Create(path)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := f.Write(data); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
				if err := f.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			v := mustOpen(b, newConfig(b, b.TempDir()))
			r := mustCreate(b, v)
			mustSeal(b, v, r, string(make([]byte, size.bytes)))
			b.SetBytes(int64(size.bytes))
			for b.Loop() {
				if _, err := v.Load(owner, r.ProfileID, r.Ref); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Lookups and the start, among 1,000 profiles (weak spots 16 and 17).
func Benchmark1000Profiles(b *testing.B) {
	c := newConfig(b, b.TempDir())
	v := mustOpen(b, c)
	var last Record
	for range 1000 {
		last = mustCreate(b, v)
	}
	b.Run("Lookup", func(b *testing.B) {
		for b.Loop() {
			if _, err := v.Lookup(owner, last.ProfileID, last.Ref); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("LookupAbsent", func(b *testing.B) {
		absent := ident.Token(32)
		for b.Loop() {
			if _, err := v.Lookup(owner, last.ProfileID, absent); err == nil {
				b.Fatal("found")
			}
		}
	})
	if err := v.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("Open", func(b *testing.B) {
		for b.Loop() {
			v, err := Open(c)
			if err != nil {
				b.Fatal(err)
			}
			if err := v.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Lookups read no file: with the directory emptied behind the vault's back the
// answer is the same (weak spot 16).
func TestLookupReadsNoFile(t *testing.T) {
	c := newConfig(t, t.TempDir())
	v := mustOpen(t, c)
	r := mustCreate(t, v)
	if err := os.Remove(filepath.Join(c.Dir, fileName(r.Ref))); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Lookup(owner, r.ProfileID, r.Ref); err != nil || fmt.Sprint(got) != fmt.Sprint(r) {
		t.Errorf("%+v, %v", got, err)
	}
}
