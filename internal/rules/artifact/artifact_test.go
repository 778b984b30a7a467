package artifact

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

var (
	ana = caller.Scope{Tenant: "local", Principal: "ana"}
	now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
)

func pngOf(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jpegOf(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, w, h)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// webpOf is the beginning of a WebP file whose first chunk is as given.
func webpOf(chunk string, body ...byte) []byte {
	body = append(body, make([]byte, max(0, 10-len(body)))...)
	b := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, uint32(12+len(body)))...)
	b = append(b, "WEBP"+chunk...)
	b = append(b, binary.LittleEndian.AppendUint32(nil, uint32(len(body)))...)
	return append(b, body...)
}

// UPL-03: the three kinds, told by content.
func TestRead(t *testing.T) {
	for name, x := range map[string]struct {
		data []byte
		want Format
	}{
		"png":           {pngOf(t, 3, 2), Format{PNG, 3, 2}},
		"jpeg":          {jpegOf(t, 16, 9), Format{JPEG, 16, 9}},
		"webp lossy":    {webpOf("VP8 ", 0, 0, 0, 0x9d, 1, 0x2a, 0x40, 0x01, 0xf0, 0x40), Format{WebP, 320, 240}},
		"webp lossless": {webpOf("VP8L", 0x2f, 0xff, 0xc0, 0x17, 0), Format{WebP, 256, 96}},
		"webp extended": {webpOf("VP8X", 0, 0, 0, 0, 0xff, 0x0f, 0, 0x01, 0, 0), Format{WebP, 4096, 2}},
	} {
		if got, ok := Read(x.data); !ok || got != x.want {
			t.Errorf("%s is read as %+v, %v", name, got, ok)
		}
	}
}

// wide is a PNG whose header claims a width and that is otherwise small.
func wide(t *testing.T, width uint32) []byte {
	b := pngOf(t, 1, 1)
	binary.BigEndian.PutUint32(b[16:], width)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

func TestReadRefuses(t *testing.T) {
	short := webpOf("VP8X")
	for name, data := range map[string][]byte{
		"nothing": nil, "text": []byte(strings.Repeat("not an image ", 9)), "gif": []byte("GIF89a" + strings.Repeat("\x01\x00", 40)),
		"svg": []byte(`<svg xmlns="http://www.w3.org/2000/svg"></svg>`), "html named png": []byte("<!doctype html>\x89PNG\r\n\x1a\n"),
		"png signature only": []byte("\x89PNG\r\n\x1a\n"), "png cut in its header": pngOf(t, 3, 2)[:20], "jpeg signature only": []byte("\xff\xd8\xff\xe0"),
		"jpeg without a frame": append([]byte("\xff\xd8\xff\xda"), make([]byte, 60)...), "too wide": wide(t, maxSide+1), "no width": wide(t, 0),
		"webp cut short": short[:len(short)-1], "webp with a tail": append(webpOf("VP8X"), 0), "webp of another chunk": webpOf("JUNK"),
		"webp no key frame": webpOf("VP8 ", 1, 0, 0, 0x9d, 1, 0x2a, 1, 0, 1, 0), "webp wrong start code": webpOf("VP8 ", 0, 0, 0, 1, 2, 3, 1, 0, 1, 0),
		"webp no signature": webpOf("VP8L", 0x30), "webp lossy without size": webpOf("VP8 ", 0, 0, 0, 0x9d, 1, 0x2a),
		"riff that is sound": []byte("RIFF\x24\x00\x00\x00WAVEfmt " + strings.Repeat("\x00", 40)),
	} {
		if f, ok := Read(data); ok {
			t.Errorf("%s is read as %+v", name, f)
		}
	}
}

// UPL-06: each of the seven checks, alone.
func TestSevenChecks(t *testing.T) {
	data := pngOf(t, 4, 4)
	i, err := Describe(ana, ident.New(), "s1", data, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if !i.Usable(ana, "s1", now) || !i.Holds(data) {
		t.Fatalf("a good image is refused: %+v", i)
	}
	for name, ok := range map[string]bool{
		"another principal": i.Usable(caller.Scope{Tenant: "local", Principal: "ben"}, "s1", now),
		"another tenant":    i.Usable(caller.Scope{Tenant: "other", Principal: "ana"}, "s1", now),
		"another session":   i.Usable(ana, "s2", now), "no session": Image{Scope: ana, Origin: Attached, ExpiresAt: now.Add(1)}.Usable(ana, "", now),
		"the moment of its expiry": i.Usable(ana, "s1", i.ExpiresAt),
	} {
		if ok {
			t.Errorf("usable by %s", name)
		}
	}
	other := i
	other.Origin = "tool_output"
	if other.Usable(ana, "s1", now) {
		t.Error("usable although it was not attached by the owner")
	}
	changed := bytes.Clone(data)
	changed[len(changed)-1] ^= 1
	resized, retyped := i, i
	resized.Size++
	retyped.Type = JPEG
	widened := i
	widened.Width++
	for name, ok := range map[string]bool{
		"a changed byte": i.Holds(changed), "a byte more": i.Holds(append(bytes.Clone(data), 0)), "another size": resized.Holds(data),
		"another type": retyped.Holds(data), "other dimensions": widened.Holds(data), "nothing": i.Holds(nil),
	} {
		if ok {
			t.Errorf("%s passes", name)
		}
	}
}

func TestDescribeRefuses(t *testing.T) {
	if _, err := Describe(ana, ident.New(), "s", []byte("<svg/>"), now, Life); !fault.Is(err, fault.UnsupportedMedia) {
		t.Errorf("no image: %v", err)
	}
	big := append(pngOf(t, 2, 2), make([]byte, MaxSize)...)
	if _, err := Describe(ana, ident.New(), "s", big, now, Life); !fault.Is(err, fault.PayloadTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestQuota(t *testing.T) {
	q := Quota{Images: 2, Bytes: 100}
	for _, x := range []struct {
		used Use
		size int64
		want bool
	}{{Use{}, 100, true}, {Use{}, 101, false}, {Use{1, 60}, 40, true}, {Use{1, 60}, 41, false}, {Use{2, 2}, 1, false}, {Use{1, 200}, 1, false}} {
		if q.Takes(x.used, x.size) != x.want {
			t.Errorf("%+v and %d: want %v", x.used, x.size, x.want)
		}
	}
}

// UPL-07, UPL-08, UPL-09: what travels is checked without its record, is named
// by us, and shows nothing of its bytes.
func TestPayload(t *testing.T) {
	data := jpegOf(t, 8, 8)
	good := Payload{ID: ident.New(), Type: JPEG, SHA256: Sum(data), Data: secret.NewBytes(data)}
	if !good.Valid() || good.Name() != good.ID+".jpg" {
		t.Fatalf("%q %v", good.Name(), good.Valid())
	}
	for name, change := range map[string]func(*Payload){
		"a name for an id": func(p *Payload) { p.ID = "../holiday" }, "another type": func(p *Payload) { p.Type = PNG }, "no type": func(p *Payload) { p.Type = "" },
		"another sum": func(p *Payload) { p.SHA256 = Sum(nil) }, "no bytes": func(p *Payload) { p.Data = secret.Bytes{} },
		"other bytes": func(p *Payload) { p.Data = secret.NewBytes(jpegOf(t, 9, 9)) },
	} {
		bad := good
		if change(&bad); bad.Valid() {
			t.Errorf("%s passes", name)
		}
	}
	encoded, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	if shown := fmt.Sprintf("%v %+v %#v %s", good, good, good, encoded); strings.Contains(shown, "JFIF") || strings.Contains(shown, "255 216") {
		t.Errorf("the bytes show: %.200s", shown)
	}
}

// Whatever the bytes, reading them ends, and what it finds is within bounds.
func FuzzRead(f *testing.F) {
	f.Add(pngOf(f, 2, 2))
	f.Add(jpegOf(f, 2, 2))
	f.Add(webpOf("VP8X"))
	f.Add(webpOf("VP8L", 0x2f))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := Read(data)
		if ok && (got.Width < 1 || got.Height < 1 || got.Width > maxSide || got.Height > maxSide || got.Type.Extension() == "") {
			t.Errorf("%+v", got)
		}
		if !ok && got != (Format{}) {
			t.Errorf("refused, and still %+v", got)
		}
	})
}
