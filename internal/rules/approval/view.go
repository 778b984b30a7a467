package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// ViewID, UploadViewID and OpenViewID name the shapes of View.
const (
	ViewID       = "browser.act.v1"
	UploadViewID = "browser.upload.v1"
	OpenViewID   = "browser.navigate.v1"
)

// View is what the owner is shown of an act. Members that begin with Page or
// Element quote the website; the rest is ours. Reference and revision never
// appear (VIEW-04).
type View struct {
	View           string `json:"view"`
	Described      bool   `json:"described"` // false: the element's description is lost and only Kind is known
	Kind           string `json:"kind"`
	PageOrigin     string `json:"page_origin,omitempty"`
	PagePath       string `json:"page_path,omitempty"`
	PageTitle      string `json:"page_title,omitempty"`
	ElementRole    string `json:"element_role,omitempty"`
	ElementName    string `json:"element_name,omitempty"`
	ElementText    string `json:"element_text,omitempty"`
	ElementContext string `json:"element_context,omitempty"`
	Field          string `json:"field,omitempty"`
	Text           string `json:"text,omitempty"`   // what will be typed
	Option         string `json:"option,omitempty"` // what will be selected
	Key            string `json:"key,omitempty"`
	ScrollDeltaY   int    `json:"scroll_delta_y,omitempty"`
	Checked        bool   `json:"checked,omitempty"`  // the box will be ticked
	Redacted       bool   `json:"redacted,omitempty"` // what looks like a secret is masked in Text or Option; without either, all of it is withheld
	Digest         string `json:"digest,omitempty"`   // SHA-256 of a text over 512 characters, as masked
	// Consequence is one of consequence.All; empty when there is no description.
	Consequence consequence.Consequence `json:"consequence,omitempty"`
	Refused     bool                    `json:"refused,omitempty"` // typing where only the owner may: it will not be done
	Image       *Image                  `json:"image,omitempty"`   // uploads only
}

// Image is what the owner is told of an image that is to be uploaded.
type Image struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Size   int64  `json:"size"`  // bytes
	Width  int    `json:"width"` // pixels
	Height int    `json:"height"`
	SHA256 string `json:"sha256"`
}

// DescribeOpen makes the view of opening an address that names an act.
func DescribeOpen(u site.URL) (View, string) {
	v := View{
		View: OpenViewID, Described: true, Kind: "navigate", PageOrigin: u.Origin().String(), PagePath: clean(u.Path(), 256),
		Consequence: consequence.Classify(consequence.Subject{Act: "navigate", Field: observe.FieldNone, Segments: strings.Split(u.Path(), "/")}),
	}
	return v, "Open " + clean(u.Host(), 64) + clean(u.Path(), 64)
}

// DescribeUpload makes the view of an upload of the image into an element of
// the observation (UPL-05).
func DescribeUpload(a action.Action, i artifact.Image, raw observe.Raw) (View, string) {
	v, summary := Describe(a, raw)
	v.View, v.Consequence = UploadViewID, consequence.FileTransfer
	v.Image = &Image{ID: i.ID, Type: string(i.Type), Size: i.Size, Width: i.Width, Height: i.Height, SHA256: i.SHA256}
	return v, summary
}

// Bounds of a text that the owner is shown, in characters.
const (
	maxShown    = 4096 // all that an agent can type at once
	digestAbove = 512
)

// Describe makes the view of an act on an element of the observation, and its
// one-line summary in our own words. An element that the observation does not
// have yields a view that says so.
func Describe(a action.Action, raw observe.Raw) (View, string) {
	v := View{View: ViewID, Kind: string(a.Kind)}
	d := raw.Document()
	element, facts, ok := raw.Find(a.Ref)
	page, err := site.ParseURL(d.URL)
	if !ok || err != nil || d.Revision != a.ExpectedRevision {
		return v, verb(a.Kind) + " an element that can no longer be described"
	}
	v.Described = true
	v.PageOrigin, v.PagePath = page.Origin().String(), clean(page.Path(), 256)
	v.PageTitle = clean(d.Title, 256)
	v.ElementRole, v.ElementName = clean(element.Role, 64), clean(element.Name, 256)
	if t := clean(facts.Text, 256); fold(t) != fold(v.ElementName) {
		v.ElementText = t
	}
	v.ElementContext, v.Field = clean(facts.Context, 128), string(facts.FieldKind)
	v.Consequence = classify(a, element, facts, d.States[a.Ref])
	v.Refused = a.Kind == action.Type && facts.FieldKind.Credential()
	switch {
	case a.Kind == action.Type && a.Value != nil:
		v.Text, v.Redacted, v.Digest = shown(*a.Value, facts.FieldKind)
	case a.Kind == action.Select && a.Value != nil:
		v.Option, v.Redacted, v.Digest = shown(*a.Value, facts.FieldKind)
	case a.Kind == action.Press && a.Key != nil:
		v.Key = *a.Key
	case a.Kind == action.Scroll && a.DeltaY != nil:
		v.ScrollDeltaY = *a.DeltaY
	case a.Kind == action.Check:
		v.Checked = true
	}
	return v, verb(a.Kind) + " " + roleWord(element.Role) + " on " + clean(page.Host(), 64) + clean(page.Path(), 64)
}

func verb(k action.Kind) string {
	switch k {
	case action.Click:
		return "Click"
	case action.Type:
		return "Type into"
	case action.Select:
		return "Choose in"
	case action.Check:
		return "Tick"
	case action.Press:
		return "Press a key in"
	case action.Scroll:
		return "Scroll at"
	case action.Attach:
		return "Give an image to"
	}
	return "Act on"
}

// roleWords is the closed set of role words a summary may use (section 2.7).
var roleWords = map[string]bool{
	"button": true, "link": true, "checkbox": true, "radio": true, "switch": true, "textbox": true,
	"searchbox": true, "combobox": true, "listbox": true, "option": true, "menuitem": true,
	"menuitemcheckbox": true, "menuitemradio": true, "tab": true, "slider": true, "spinbutton": true, "treeitem": true,
}

func roleWord(role string) string {
	if !roleWords[role] {
		return "an element"
	}
	if strings.ContainsRune("aeiou", rune(role[0])) {
		return "an " + role
	}
	return "a " + role
}

// credentialShape finds what looks like a secret: the value behind a word for
// one, or a text with the well-known beginning of a key or token (VIEW-03).
// Its groups are what stays readable.
var credentialShape = regexp.MustCompile(`(?i)((?:^|[^a-z])(?:api[ _-]?key|secret|passw(?:or)?d|passphrase|token|bearer)["']?\s*[:=]\s*)(?:"[^"\n]+"|'[^'\n]+'|(?:bearer\s+|basic\s+)?\S+)` +
	`|(\bbearer\s+)[a-z0-9._~+/-]{16,}=*` +
	`|-----BEGIN [A-Z ]*PRIVATE KEY(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)` +
	`|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*` +
	`|\b(?:ghp_|gho_|github_pat_|glpat-|xox[abpr]-|sk-|AKIA)[\w-]{12,}`)

// mask stands for a secret; it says nothing of its length.
const mask = "••••••••"

// shown is the text for the owner with its secrets masked, whether there were
// any, and the digest of a long one as it is shown. What is typed into a field
// for secrets is withheld whole, and has no digest.
func shown(value string, field observe.FieldKind) (text string, redacted bool, digest string) {
	if field.Credential() || field == observe.FieldPayment {
		return "", true, ""
	}
	masked := credentialShape.ReplaceAllString(value, "${1}${2}"+mask)
	runes := []rune(masked)
	if len(runes) > digestAbove {
		sum := sha256.Sum256([]byte(masked))
		digest = hex.EncodeToString(sum[:])
	}
	if len(runes) > maxShown {
		return visible(string(runes[:maxShown])) + "…", masked != value, digest
	}
	return visible(masked), masked != value, digest
}

// visible marks the hidden characters of a text that an agent would enter: the
// owner must not approve what cannot be seen. The joiners and the selector
// that scripts and emoji need stay.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) && r != '\u200c' && r != '\u200d' && r != '\ufe0f' {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// hidden reports whether r has no picture of its own, or moves those of its
// neighbours. Line breaks and tabs do not count.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) ||
		unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point))
}

// clean strips, folds white space and cuts to max characters.
func clean(s string, max int) string {
	s = strings.Join(strings.Fields(strip(s)), " ")
	if r := []rune(s); len(r) > max {
		return string(r[:max-1]) + "…"
	}
	return s
}

// strip removes hidden characters, with which a page could reorder or hide
// what the owner reads.
func strip(s string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, s)
}

func fold(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }
