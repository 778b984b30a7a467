package pagejs

// FocusArgs names a region of a revision; region -1 is the one in focus.
type FocusArgs struct {
	Revision string `json:"revision"`
	Region   int    `json:"region"`
}

// ExtractArgs names a collection and the columns that are wanted of it.
type ExtractArgs struct {
	Kind     string `json:"kind"`
	Index    int    `json:"index"`
	Columns  []int  `json:"columns"`
	RowLimit int    `json:"rowLimit"`
}

// ChallengeArgs says which question is asked: the bounded one of a leased
// page, or the ceremony's.
type ChallengeArgs struct {
	Whole bool `json:"whole"`
}

// Extras is what Observe saw besides controls.
type Extras struct {
	Text          string `json:"text"`
	TextNodes     int    `json:"textNodes"`
	TextUnits     int    `json:"textUnits"` // of UTF-16, looked at
	TextNodeLimit bool   `json:"textNodeLimit"`
	TextLimit     bool   `json:"textLimit"`

	Regions        []Region `json:"regions"`
	RegionNodes    int      `json:"regionNodes"`
	RegionLimit    bool     `json:"regionLimit"`
	OmittedRegions int      `json:"omittedRegions"`

	Extraction *Collection `json:"extraction"`
	Draft      DraftState  `json:"draft"`
}

// Region is one part of the page; its index is its handle.
type Region struct {
	Kind          string `json:"kind"`
	Text          string `json:"text"`
	TextTruncated bool   `json:"textTruncated"`
}

// Collection is what was found of a table, list, form or main region. A cell
// that is not there is nil.
type Collection struct {
	Status      string    `json:"status"`
	SourceName  string    `json:"sourceName"`
	SourceNodes int       `json:"sourceNodes"`
	SourceLimit bool      `json:"sourceLimit"`
	RowNodes    int       `json:"rowNodes"`
	RowLimit    bool      `json:"rowLimit"`
	Rows        [][]*Cell `json:"rows"`
	OmittedRows int       `json:"omittedRows"`
}

// Cell is the text of one wanted column.
type Cell struct {
	Text      string `json:"text"`
	Truncated bool   `json:"truncated"`
}

// DraftState says what became of a draft.
type DraftState string

// The states of a draft.
const (
	DraftHolds     DraftState = "holds"
	DraftElsewhere DraftState = "elsewhere" // outside the part that was read
	DraftVoid      DraftState = "void"
)
