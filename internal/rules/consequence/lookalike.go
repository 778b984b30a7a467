package consequence

import "strings"

// looks are letters beside the Latin ones they look like, after folding: each
// row is a letter, then its look-alikes (section 2.6: Cyrillic, Greek, Armenian,
// small capitals, IPA, the digits 0 and 1). Letters with a stroke are added,
// which have no decomposition, and Arabic letters that are typed for each other.
var looks = table(
	"a аαᴀɑ", "b βвьʙƀ", "c сϲᴄ", "d ԁᴅđ", "e еεᴇ", "f ꜰ", "g ցɢɡ", "h һнηհʜħ", "i іιɪıɩɨ", "j јϳᴊȷ", "k кκᴋ",
	"l ӏʟǀ1ł", "m мμᴍ", "n пνոɴ", "o оοօᴏ0ø", "p рρᴘ", "q ԛզ", "r ʀɍ", "s ѕꜱ", "t тτᴛŧ", "u սᴜʉ", "v ᴠ", "w ԝωᴡ",
	"x хχ", "y уүυγʏɏ", "z ζᴢƶ", "ي ىی", "ك ک", "ه ة",
)

// secondLooks are read first in a second reading.
var secondLooks = table("n ηп", "v ν", "u μυ")

func table(rows ...string) map[rune]rune {
	m := map[rune]rune{}
	for _, row := range rows {
		letter, others, _ := strings.Cut(row, " ")
		for _, r := range others {
			m[r] = []rune(letter)[0]
		}
	}
	return m
}

// mapped reads look-alikes as the letters they look like.
func mapped(folded string, second bool) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && r != '0' && r != '1' {
			return r
		}
		if second {
			if l, ok := secondLooks[r]; ok {
				return l
			}
		}
		if l, ok := looks[r]; ok {
			return l
		}
		return r
	}, folded)
}
