package artifact

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"image/png"
)

// Type is the media type of an image.
type Type string

// The types that may be uploaded (UPL-03).
const (
	PNG  Type = "image/png"
	JPEG Type = "image/jpeg"
	WebP Type = "image/webp"
)

// Extension is the ending of a file's name, with its dot; "" for no such type.
func (t Type) Extension() string {
	switch t {
	case PNG:
		return ".png"
	case JPEG:
		return ".jpg"
	case WebP:
		return ".webp"
	}
	return ""
}

// Format is what the first bytes of an image say.
type Format struct {
	Type          Type
	Width, Height int // 1 to 16384 pixels
}

// maxSide bounds both dimensions, in pixels.
const maxSide = 16384

// Read tells the format of data by its content; a name or a declared type says
// nothing. The pixels are not decoded.
func Read(data []byte) (Format, bool) {
	f := Format{}
	var c image.Config
	var err error
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		f.Type = PNG
		c, err = png.DecodeConfig(bytes.NewReader(data))
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		f.Type = JPEG
		c, err = jpeg.DecodeConfig(bytes.NewReader(data))
	case len(data) >= 30 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		f.Type = WebP
		c.Width, c.Height = webp(data)
	default:
		return Format{}, false
	}
	f.Width, f.Height = c.Width, c.Height
	if err != nil || f.Width < 1 || f.Height < 1 || f.Width > maxSide || f.Height > maxSide {
		return Format{}, false
	}
	return f, true
}

// webp reads the dimensions out of the first chunk of a WebP file, of which
// data has at least 30 bytes. It returns zeros for a file that is cut short, or
// that begins with none of the three kinds of chunk.
func webp(data []byte) (width, height int) {
	size := int(binary.LittleEndian.Uint32(data[4:]))
	if size != len(data)-8 {
		return 0, 0
	}
	if chunk := int(binary.LittleEndian.Uint32(data[16:])); chunk < 10 || chunk > len(data)-20 {
		return 0, 0
	}
	body := data[20:]
	switch string(data[12:16]) {
	case "VP8 ": // a key frame: tag, start code, two times 14 bits
		if body[0]&1 != 0 || string(body[3:6]) != "\x9d\x01\x2a" {
			return 0, 0
		}
		return int(binary.LittleEndian.Uint16(body[6:])) & 0x3fff, int(binary.LittleEndian.Uint16(body[8:])) & 0x3fff
	case "VP8L": // a signature, then two times 14 bits, each less one
		if body[0] != 0x2f || body[4]>>5 != 0 {
			return 0, 0
		}
		bits := binary.LittleEndian.Uint32(body[1:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8X": // flags, then two times 24 bits, each less one
		return 1 + (int(body[4]) | int(body[5])<<8 | int(body[6])<<16), 1 + (int(body[7]) | int(body[8])<<8 | int(body[9])<<16)
	}
	return 0, 0
}
