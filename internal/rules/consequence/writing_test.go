package consequence

import "strings"

// writingRows are the ways to write a word so that a person still reads it, or
// to show another one than is written.
func writingRows() []expectation {
	var out []expectation
	row := func(rule, text string, want Consequence) {
		out = append(out, expectation{rule, click(text), want})
	}
	for text, want := range map[string]Consequence{
		"\u202eyap\u202c":                        Payment,
		"now \u202eyap\u202c now":                Payment,
		"\u202eyap":                              Payment, // no closing control
		"\u202eyap\n":                            Payment, // the paragraph ends it
		"\u202eyap\u2029next":                    Payment,
		"ab\u202e yap \u202ccd":                  Payment,
		"\u202ey\u202da\u202cp":                  Payment, // nesting is counted
		"\u202ey\u202dpa\u202c\u202c":            Payment, // what keeps its order inside
		"\u202ey\u2066pa\u2069\u202c":            Payment, // an isolate inside
		"\u202ee\u202etel\u202ced\u202c":         Destructive,
		"\u2067\u202eyap\u2069 more":             Payment, // the isolate ends what is open in it
		"\u202epay\u202c":                        Payment, // as written
		"\u202eeunitnoc\u202c":                   Unknown, // reads routine, is written otherwise
		"\u202econtinue\u202c":                   Unknown,
		strings.Repeat("\u202e", 300) + "yap":    Payment, // deeper than any browser goes
		"\u202c\u2069\u202cnothing was open pay": Payment,
	} {
		row("overrides", text, want)
	}
	for text, want := range map[string]Consequence{
		"de\u200blete": Destructive, "p\u200ca\u200dy": Payment, "p\u00ada\u00ady": Payment, "\ufeffpay": Payment,
		"p\u2060a\u2060y": Payment, "de\U000e0041lete": Destructive, "d\u034felete": Destructive, "pa\u180ey": Payment,
	} {
		row("invisible", text, want)
	}
	for text, want := range map[string]Consequence{
		"ṗạÿ": Payment, "d\u0336e\u0336l\u0336e\u0336t\u0336e\u0336": Destructive, "Dèlété": Destructive, "p\u20dda\u20ddy\u20dd": Payment,
		"a\u0301ccept": LegalAcceptance, "De\u0300lete": Destructive,
	} {
		row("marks", text, want)
	}
	for text, want := range map[string]Consequence{
		"p a y": Payment, "P.A.Y": Payment, "d-e-l-e-t-e": Destructive, "Pa\u200ay": Payment, "p\u2006a\u2006y": Payment,
		"支 付": Payment, "登 录": AuthenticationChange, "결 제": Payment, "a b c": Unknown, "Р а у": Payment,
	} {
		row("set apart", text, want)
	}
	for _, sign := range "$¢£¤¥֏؋৲৳฿៛₠€₩₪₫₭₮₱₲₴₸₹₺₽₿꠸﷼﹩＄￠￡￥￦" {
		row("currency", "Continue "+string(sign), Payment)
		out = append(out, expectation{"currency", Subject{Act: "select", Role: "combobox", Field: "select", Options: []string{string(sign) + "5"}}, Payment})
	}
	for text, want := range map[string]Consequence{"EUR100": Payment, "100usd": Payment, "5 gems": Payment, "mp3": Unknown, "2FA": AuthenticationChange} {
		row("numbers", text, want)
	}
	// One label in a script without a vocabulary: never routine, also beside a
	// routine word.
	for _, text := range []string{"გაგრძელება", "ต่อไป", "המשך", "συνέχεια", "շարունակել", "जारी रखें", "தொடர்", "ቀጥል", "បន្ត", "ᏣᎳᎩ"} {
		row("scripts", text, Unknown)
		out = append(out,
			expectation{"scripts", click("Continue", text), Unknown},
			expectation{"scripts", Subject{Act: "click", Role: "button", Labels: []string{"Continue"}, Context: text, Field: "none"}, Unknown},
			expectation{"scripts", Subject{Act: "click", Role: "link", Labels: []string{"Continue"}, Segments: []string{text}, Field: "none"}, Unknown},
			expectation{"scripts", Subject{Act: "scroll", Role: "region", Labels: []string{text}, Field: "none"}, Unknown},
			expectation{"scripts", click(text + " pay"), Payment})
	}
	for _, text := range []string{"Continue\xff", "\xc3\x28", "Cont\xedinue"} {
		row("not UTF-8", text, Unknown)
	}
	row("not UTF-8", "\xff pay", Payment)
	return out
}
