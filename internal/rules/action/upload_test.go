package action

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
)

const picture = "3f0c1f9e-6a34-4b57-9a52-0d6c0c1f2a3b"

func uploadOf(more string) string {
	return `{"image_id":"` + picture + `","expected_revision":"r1","ref":"r1:3"` + more + `}`
}

// UPL-01, UPL-07: exactly three arguments, none of which says where an image is.
func TestPrepareUpload(t *testing.T) {
	r, err := PrepareFor(contract.Newest, Upload, json.RawMessage(uploadOf("")))
	if err != nil || r.Image != picture || r.Action != (Action{Kind: Attach, ExpectedRevision: "r1", Ref: "r1:3"}) {
		t.Fatalf("%+v, %v", r, err)
	}
	if act, _ := contract.Newest.Of(contract.Act); r.Version != act {
		t.Errorf("it answers as %s", r.Version)
	}
	again, err := json.Marshal(r.Arguments())
	if err != nil || string(again) != uploadOf("") {
		t.Errorf("on the wire it is %s (%v)", again, err)
	}
	if same, err := Prepare(Upload, again); err != nil || same.Digest != r.Digest {
		t.Errorf("the isolated service reads another call: %v", err)
	}
	for _, bad := range []string{
		uploadOf(`,"url":"https://a.example/x.png"`), uploadOf(`,"path":"/etc/passwd"`), uploadOf(`,"data_base64":""`), uploadOf(`,"selector":"input"`),
		uploadOf(`,"kind":"upload"`), uploadOf(`,"image_id":"` + picture + `"`), `{}`, `{"image_id":"` + picture + `","ref":"r1:3"}`,
		strings.Replace(uploadOf(""), picture, "holiday.png", 1), strings.Replace(uploadOf(""), picture, strings.ToUpper(picture), 1),
		strings.Replace(uploadOf(""), `"r1:3"`, `""`, 1), strings.Replace(uploadOf(""), `"r1"`, `"`+strings.Repeat("x", MaxRef+1)+`"`, 1),
	} {
		if _, err := PrepareFor(contract.Newest, Upload, json.RawMessage(bad)); !fault.Is(err, fault.ArgumentsInvalid) {
			t.Errorf("%.120s: %v", bad, err)
		}
	}
	// UPL-10: older sets have no such tool.
	for _, set := range contract.Sets()[:len(contract.Sets())-1] {
		if _, err := PrepareFor(set, Upload, json.RawMessage(uploadOf(""))); !fault.Is(err, fault.ArgumentsInvalid) {
			t.Errorf("set %s: %v", set, err)
		}
	}
	// No act can be an upload.
	if _, err := Prepare(Act, json.RawMessage(`{"kind":"upload","expected_revision":"r","ref":"r:1"}`)); !fault.Is(err, fault.ArgumentsInvalid) {
		t.Errorf("an act of kind upload: %v", err)
	}
}

// UPL-05: what is approved is the call with these very bytes.
func TestBound(t *testing.T) {
	r, err := PrepareFor(contract.Newest, Upload, json.RawMessage(uploadOf("")))
	if err != nil {
		t.Fatal(err)
	}
	a, b := r.Bound("aa"), r.Bound("bb")
	if a.Digest == b.Digest || a.Digest == r.Digest || len(a.Digest) != 64 || a.Digest != r.Bound("aa").Digest {
		t.Errorf("%s %s %s", r.Digest, a.Digest, b.Digest)
	}
}
