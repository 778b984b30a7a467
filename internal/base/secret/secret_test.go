package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const leak = "hunter2-correct-horse"

// holder has the secrets where programs have them: in unexported fields, which
// fmt prints without asking their methods, and in maps, slices and pointers.
type holder struct {
	Text    Text
	Bytes   Bytes
	text    Text
	bytes   Bytes
	pointer *Text
	list    []Bytes
	table   map[string]Text
	any     any
}

func held() holder {
	s, b := NewText(leak), NewBytes([]byte(leak))
	return holder{s, b, s, b, &s, []Bytes{b}, map[string]Text{"x": s}, s}
}

// STORE-02, LHTTP-05: no way of printing, logging or encoding shows a secret.
func TestNothingLeaks(t *testing.T) {
	h := held()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T"} {
		for _, v := range []any{h, &h, h.Text, &h.Text, h.Bytes, &h.Bytes, h.list, h.table, []any{h.Text}, errors.Join(fmt.Errorf(verb, h))} {
			clean(t, verb, fmt.Sprintf(verb, v))
		}
	}
	clean(t, "Sprint", fmt.Sprint(h, h.Text, h.Bytes))
	clean(t, "String", h.Text.String()+h.Bytes.String()+h.Text.GoString()+h.Bytes.GoString())

	for what, encode := range map[string]func(any) ([]byte, error){
		"json": json.Marshal,
		"xml":  xml.Marshal,
		"gob": func(v any) ([]byte, error) {
			var b bytes.Buffer
			err := gob.NewEncoder(&b).Encode(v)
			return b.Bytes(), err
		},
	} {
		for _, v := range []any{h.Text, h.Bytes, h.list, struct{ A, B any }{h.Text, h.Bytes}} {
			b, err := encode(v)
			clean(t, what, string(b)+fmt.Sprint(err))
		}
	}
	for what, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text log": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"json log": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var b bytes.Buffer
		slog.New(handler(&b)).Error("x", "text", h.Text, "bytes", h.Bytes, "holder", h, "pointer", &h, "list", h.list)
		clean(t, what, b.String())
	}
}

func clean(t *testing.T, how, out string) {
	t.Helper()
	for _, spelling := range []string{
		leak, fmt.Sprintf("%x", leak), fmt.Sprintf("%X", leak), base64.StdEncoding.EncodeToString([]byte(leak)),
		fmt.Sprint([]byte(leak)), strings.Trim(fmt.Sprint([]byte(leak)), "[]"), fmt.Sprintf("%#v", []byte(leak)),
	} {
		if strings.Contains(out, spelling) {
			t.Errorf("%s shows the secret: %s", how, out)
		}
	}
}

func TestReveal(t *testing.T) {
	if s := NewText(leak); s.Reveal() != leak || s.Empty() {
		t.Error("a text is not what it was made of")
	}
	b := NewBytes([]byte(leak))
	if string(b.Reveal()) != leak || b.Len() != len(leak) {
		t.Error("bytes are not what they were made of")
	}
	same := b
	b.Wipe()
	if bytes.ContainsFunc(same.Reveal(), func(r rune) bool { return r != 0 }) || same.Len() != len(leak) {
		t.Error("wiping left something in a copy of the value")
	}
	if (Text{}).Reveal() != "" || !(Text{}).Empty() || (Bytes{}).Len() != 0 || (Bytes{}).Reveal() != nil {
		t.Error("the zero values are not empty")
	}
	Bytes{}.Wipe()
}

// A missing credential opens nothing.
func TestEqual(t *testing.T) {
	for _, x := range []struct {
		secret Text
		other  string
		want   bool
	}{
		{NewText(leak), leak, true}, {NewText(leak), leak + "x", false}, {NewText(leak), leak[1:], false},
		{NewText(leak), "", false}, {NewText(leak), strings.ToUpper(leak), false},
		{NewText(""), "", false}, {Text{}, "", false}, {Text{}, "x", false},
	} {
		if got := x.secret.Equal(x.other); got != x.want {
			t.Errorf("%q equals %q: %v", x.secret.Reveal(), x.other, got)
		}
	}
}
