package browser

import (
	"encoding/json"
	"fmt"
)

// MaxMaterial is the largest session that is sealed or restored, in bytes of
// JSON (STORE-06).
const MaxMaterial = 64 << 20

// Material is a site session: cookies and localStorage. It is a secret; it
// travels only between the vault and one worker, and prints as a mask.
type Material struct {
	Cookies []Cookie  `json:"cookies"`
	Origins []Storage `json:"origins"`
}

// Cookie is one cookie with everything that scopes it.
type Cookie struct {
	Name         string        `json:"name"`
	Value        string        `json:"value"`
	Domain       string        `json:"domain"` // with a leading dot for a domain cookie
	Path         string        `json:"path"`
	Expires      float64       `json:"expires"` // Unix seconds; -1 for a session cookie
	HTTPOnly     bool          `json:"httpOnly"`
	Secure       bool          `json:"secure"`
	SameSite     string        `json:"sameSite,omitempty"` // Strict, Lax, None, or empty when the site said nothing
	Priority     string        `json:"priority,omitempty"`
	SourceScheme string        `json:"sourceScheme,omitempty"`
	SourcePort   int           `json:"sourcePort,omitempty"`
	Partition    *PartitionKey `json:"partitionKey,omitempty"`
}

// PartitionKey confines a cookie to one top-level site (CHIPS); a cookie that
// has one must never come back without it.
type PartitionKey struct {
	TopLevelSite         string `json:"topLevelSite"`
	HasCrossSiteAncestor bool   `json:"hasCrossSiteAncestor"`
}

// Storage is the localStorage of one origin.
type Storage struct {
	Origin string `json:"origin"`
	Items  []Item `json:"items"`
}

// Item is one localStorage entry.
type Item struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Empty reports whether there is no session at all in m.
func (m Material) Empty() bool {
	if len(m.Cookies) > 0 {
		return false
	}
	for _, o := range m.Origins {
		if len(o.Items) > 0 {
			return false
		}
	}
	return true
}

// Encode is the material as JSON, for sealing and for the worker's pipe only.
func (m Material) Encode() ([]byte, error) {
	b, err := json.Marshal(m)
	if err == nil && len(b) > MaxMaterial {
		err = fmt.Errorf("browser: a session of %d bytes is over the limit of %d", len(b), MaxMaterial)
	}
	return b, err
}

// String masks the material in every log and format.
func (m Material) String() string {
	return fmt.Sprintf("[session: %d cookies, %d origins]", len(m.Cookies), len(m.Origins))
}

// Format masks the material for every verb.
func (m Material) Format(f fmt.State, _ rune) { fmt.Fprint(f, m.String()) }

// String masks the typed text of an event.
func (in Input) String() string { return "[input: " + in.Kind + "]" }

// Format masks the event for every verb.
func (in Input) Format(f fmt.State, _ rune) { fmt.Fprint(f, in.String()) }
