package pagejs

// Functions for uploads and pictures.
const (
	ReceiverOf Function = "receiver"   // TargetArgs, with the media type as Value -> Receiver
	Receives   Function = "receives"   // called with an input and a media type, answers with a Reason
	PicturedAt Function = "pictured"   // TargetArgs -> Pictured
	Screen     Function = "screenSize" // {} -> Pictured; only the size of the screen
)

// Reasons of uploads.
const (
	WrongType Reason = "not_accepted" // a file input that does not take files of the type
	NoFile    Reason = "no_file"      // a field for something else
)

// Receiver is an element that may get a file.
type Receiver struct {
	Reason Reason `json:"reason"`
	Number int    `json:"number"` // of the file input, or 0 for a control to click
}

// Pictured is where an element is on screen: its middle and its size, in CSS
// pixels.
type Pictured struct {
	Reason       Reason  `json:"reason"`
	X            float64 `json:"x"`
	Y            float64 `json:"y"`
	Width        float64 `json:"width"`
	Height       float64 `json:"height"`
	ScreenWidth  float64 `json:"screenWidth"`
	ScreenHeight float64 `json:"screenHeight"`
}
