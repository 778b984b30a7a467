package pipe

import (
	"slices"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

// unsaid stands where a worker gave no reason that is known here.
const unsaid = "The browser refused without a reason that can be shown."

// sentences are all that a failure of a worker can say, by code. Only the
// place of one in its list crosses the pipe: a worker that was taken over
// chooses among our words and has none of its own (REL-02, TRUST-03). A code
// that is not here is not believed.
var sentences = map[fault.Code][]string{
	fault.URLDisallowed: {
		"The input was sent. It leads to an address that is not on an allowed origin, which was not opened; the page is kept. Observe again.",
		"No page of an allowed origin is open. Open one with browser.navigate.",
		"The address is not on an allowed origin. Nothing was sent.",
		"The site redirected to an address that is not on an allowed origin. That address was not opened; the page that was open is kept.",
		"The address is not on an allowed origin. It was not opened.",
	},
	fault.ProviderUnavailable: {
		"The browser has no room for the image. Nothing was sent.",
		"Chromium is not installed where it is configured. Run chaperone doctor.",
		"Xvfb is not installed where it is configured, and a headed browser needs it. Run chaperone doctor.",
		"A browser does not start as root, because its sandbox would be off.",
		"The browser did not start safely. Run chaperone doctor.",
		"The saved session could not be restored.",
		"The session could not be read whole.",
		"The browser has ended.",
		"The page could not be read. Observe again.",
		"The browser was busy until the call ended. Nothing was sent.",
		"The browser has ended. Nothing was sent.",
		"The picture of the page could not be started.",
		"The browser ended during the call.",
		"The call was cancelled or took too long.",
		"There is no browser yet, or there is one already.",
		"There is no browser yet.",
	},
	fault.SiteUnreachable: {
		"The address is a file to download, and downloads are denied. The page that was open is kept.",
		"The site answered without a page. The page that was open is kept.",
		"The site could not be reached, or sent no page in time. Try again later.",
	},
	fault.NavigationCancelled: {
		"The input was sent. It would have left the page, which asked not to be left and was kept. Observe again.",
		"The open page asked not to be left, and was kept. The new address was not opened.",
	},
	fault.ProfileUnavailable: {
		"The session is too large to restore. Nothing was opened.",
	},
	fault.AuthenticationRequired: {},
	fault.NeedsUser: {
		"The page asks for its owner: a sign-in, a code or a check that a person is there. Nothing was read or sent; ask the owner to sign in.",
	},
	fault.PageChanged: {
		"The page has changed since it was observed. Nothing was sent; observe again.",
		"The element is not what it was when it was observed. Nothing was sent; observe again.",
		"The region is no longer there. Observe again.",
		"The page has changed where the reading was to go on. Observe again.",
		"The page was replaced while it was read. Observe again.",
		"That is not of the newest observation. Nothing was read; observe again.",
		"The text has changed since it was read. Observe again.",
	},
	fault.ElementNotFound: {
		"The page did not answer in time. Nothing was sent; observe again.",
		"The reference is not of the current observation. Nothing was sent; observe again.",
		"The element has left the page. Nothing was sent; observe again.",
		"The element is not visible. Nothing was sent; observe again.",
		"The element is disabled. Nothing was sent; observe again.",
		"The element cannot be used while something else, such as a dialog, is open. Nothing was sent; observe again.",
		"The element does not stop moving. Nothing was sent; observe again.",
		"The element takes no clicks. Nothing was sent; observe again.",
		"Another element covers it. Nothing was sent; observe again.",
		"The element does not take the focus. Nothing was sent; observe again.",
	},
	fault.ActionNotAllowed: {
		"The element is in a frame whose origin is not one of this profile. Nothing was sent.",
		"The element cannot be used. Nothing was sent.",
		"The field is for a password or a one-time code; only the owner may fill it. Nothing was sent.",
		"The element takes no text. Nothing was sent.",
		"The element is not a native select. Nothing was sent.",
		"The element is not a check box or radio button. Nothing was sent.",
		"The field is read-only. Nothing was sent.",
		"The link opens another program. Nothing was sent.",
		"The element opens a file dialog. Nothing was sent.",
		"The element is in a frame. An image is given to the page itself only. Nothing was sent.",
		"The page holds as many images as it may. Nothing was sent; open the page again.",
		"The file field does not take images of this type. Nothing was sent.",
		"The element asks for no file. Nothing was sent.",
		"The field takes one line only. Nothing was sent.",
		"The value is not in the form that this date or time field takes. Nothing was sent.",
		"The value is longer than the field takes. Nothing was sent.",
		"The select has no such option. Nothing was sent.",
		"Several options have that label; name one by its value. Nothing was sent.",
	},
	fault.GrantNotApplicable: {
		"The grant does not cover this on the page as it is now. Nothing was sent; observe again.",
	},
	fault.RegionNotActionable: {
		"That is a region, which is for reading. Nothing was sent; use the ref of an element.",
	},
	fault.FocusRequired: {
		"A text_offset continues a focused reading. Nothing was read; read the region without text_offset first, then use the next_text it gives.",
	},
	fault.OutputInvalid: {
		"The browser's observation was refused because it lacks the extraction. Observe again.",
		"The browser's session could not be read. Nothing was saved.",
		"The browser's answer could not be read.",
		"The browser's answer is over its bound.",
		"The session is too large to keep. Nothing was saved.",
		"The browser's answer could not be encoded.",
	},
	fault.OutcomeUnknown: {
		"The input was sent. It leads to a page that the grant does not cover, which was not opened. Observe again; do not repeat it.",
		"The input was or may have been sent, and its result is not known. Do not repeat it; look at the site first.",
		"The input may not have arrived.",
		"The browser did not say what became of the input. It may have had its effect; look before repeating it.",
	},
	fault.ArgumentsInvalid: {
		"text_offset is not one that the newest observation gave. Nothing was read.",
		"The call is too large. Nothing was sent.",
		"The call could not be read. Nothing was done.",
	},
}

// reasonOf is the place of a sentence, counted from 1; 0 when it has none.
func reasonOf(e *fault.Error) int { return slices.Index(sentences[e.Code], e.Public) + 1 }

// sentence is the one at the place.
func sentence(code fault.Code, reason int) string {
	if list := sentences[code]; reason >= 1 && reason <= len(list) {
		return list[reason-1]
	}
	return unsaid
}
