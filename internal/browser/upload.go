package browser

// MaxPicture is the largest Picture, in bytes of JPEG.
const MaxPicture = 256 << 10

// Picture is the surroundings of one element, for its owner only: it never
// becomes part of an answer to an agent (VIEW-02).
type Picture struct {
	JPEG   []byte
	Width  int // of the picture, in CSS pixels; the JPEG may have other dimensions
	Height int
	Box    Box // where the element is in it
}

// Box is a rectangle in CSS pixels of a picture, cut at its edges.
type Box struct {
	X      int `json:"x"`
	Y      int `json:"y"`
	Width  int `json:"width"`
	Height int `json:"height"`
}

// Valid reports whether the picture is within bounds and begins as a JPEG does.
func (p Picture) Valid() bool {
	const side = 4096
	return len(p.JPEG) > 3 && len(p.JPEG) <= MaxPicture && p.JPEG[0] == 0xff && p.JPEG[1] == 0xd8 && p.JPEG[2] == 0xff &&
		p.Width > 0 && p.Width <= side && p.Height > 0 && p.Height <= side &&
		p.Box.X >= 0 && p.Box.Y >= 0 && p.Box.Width >= 0 && p.Box.Height >= 0 && p.Box.X <= p.Width-p.Box.Width && p.Box.Y <= p.Height-p.Box.Height
}
