package consequence

import (
	"strconv"
	"strings"
)

// lookTable is the table of section 2.6: code point and letter.
const lookTable = `
0430 a, 0432 b, 0441 c, 0501 d, 0435 e, 04BB h, 043D h, 0456 i, 0458 j, 043A k, 04CF l, 043C m, 043F n, 043E o, 0440 p,
051B q, 0455 s, 0442 t, 051D w, 0445 x, 0443 y, 04AF y, 044C b,
03B1 a, 03B2 b, 03B5 e, 03B6 z, 03B7 h, 03B9 i, 03BA k, 03BC m, 03BD n, 03BF o, 03C1 p, 03C4 t, 03C5 y, 03C7 x, 03B3 y,
03C9 w, 03F2 c, 03F3 j,
0585 o, 057D u, 0578 n, 0570 h, 0581 g, 0566 q,
1D00 a, 0299 b, 1D04 c, 1D05 d, 1D07 e, A730 f, 0262 g, 029C h, 026A i, 1D0A j, 1D0B k, 029F l, 1D0D m, 0274 n, 1D0F o,
1D18 p, 0280 r, A731 s, 1D1B t, 1D1C u, 1D20 v, 1D21 w, 028F y, 1D22 z, 0251 a, 0261 g, 0131 i, 0237 j, 0269 i, 01C0 l,
0030 o, 0031 l,
03B7 n, 03BD v, 03BC u, 03C5 u, 043F n`

// holders are words that need each letter.
var holders = map[string]struct {
	word string
	want Consequence
}{
	"a": {"pay", Payment}, "b": {"buy", Purchase}, "c": {"cancel", Destructive}, "d": {"order", Purchase}, "e": {"delete", Destructive},
	"f": {"follow", Publication}, "g": {"grant", PermissionChange}, "h": {"purchase", Purchase}, "i": {"wire", Payment},
	"j": {"jpy", Payment}, "k": {"link", PermissionChange}, "l": {"delete", Destructive}, "m": {"submit", Publication},
	"n": {"send", Publication}, "o": {"order", Purchase}, "p": {"pay", Payment}, "q": {"", Unknown}, "r": {"order", Purchase},
	"s": {"submit", Publication}, "t": {"submit", Publication}, "u": {"submit", Publication}, "v": {"remove", Destructive},
	"w": {"wire", Payment}, "x": {"export", FileTransfer}, "y": {"pay", Payment}, "z": {"authorize", PermissionChange},
}

func lookRows() []expectation {
	var out []expectation
	for pair := range strings.SplitSeq(lookTable, ",") {
		code, letter, _ := strings.Cut(strings.TrimSpace(pair), " ")
		n, err := strconv.ParseInt(code, 16, 32)
		if err != nil {
			panic(err)
		}
		h := holders[letter]
		if h.word == "" {
			continue // no word has a q
		}
		look := strings.ReplaceAll(h.word, letter, string(rune(n)))
		out = append(out, expectation{"look-alikes", click(look), h.want}, expectation{"look-alikes", click("go " + strings.ToUpper(look)), h.want})
	}
	for text, want := range map[string]Consequence{
		"Рау now":                Payment, // all three letters Cyrillic
		"ᴘᴀʏ":                    Payment,
		"ѕіgn оut":               AuthenticationChange,
		"ԁеlеtе":                 Destructive,
		"αccερτ":                 LegalAcceptance,
		"ѕubѕсribе":              Purchase,
		"deƖete":                 Unknown, // not in the table, and no known word
		"đelete":                 Destructive,
		"cοntinue":               Unknown, // looks routine, is not
		"oплaтa":                 Payment, // Latin letters in a Russian word
		"yдaлить":                Destructive,
		"🅟🅐🅨":                    Payment,
		"🇵🇦🇾":                    Payment,
		"𝗱𝗲𝗹𝗲𝘁𝗲":                 Destructive,
		"Ⓓⓔⓛⓔⓣⓔ":                 Destructive,
		"ｐａｙ":                    Payment,
		"ＤＥＬＥＴＥ":                 Destructive,
		"ﬁle uploaﬀ then upload": FileTransfer,
	} {
		out = append(out, expectation{"look-alikes", click(text), want})
	}
	return out
}
