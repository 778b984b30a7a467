package contract

// describe is what a model is told of a version: what the schema cannot say.
func describe(name string, v Version) (title, text string) {
	switch name {
	case Navigate:
		return "Open a page", "Open one public https:// URL on an origin of this session and return the page once it has settled."
	case Act:
		text = "Do one thing to one element of the newest observation: click; type (value replaces a field's text); select (an option's value or label); check; press (key); scroll (delta_y pixels). All but scrolling waits for the owner's approval."
		if v.AtLeast(V170) {
			text += " ref is an element's, never a region's. postcondition names what to look for afterwards; the answer's condition says whether it was seen, and proves nothing else."
		}
		if v.AtLeast(V190) {
			text += " An element that is blocked cannot be used now; one that scrolls is scrolled by its own ref."
		}
		return "Act on the page", text
	case Upload:
		return "Choose an image", "Give one image of the owner's to a file field, or to a control that asks for a file. Waits for the owner's approval. The site may take it at once; publishing is another act."
	}
	switch {
	case v == V100:
		text = "Read the current page again: its address, title, text and controls, with a new revision and new references."
	case v == V110:
		text = "Read a slice of the current page: controls from element_offset, text from text_offset (characters). next_element_offset and next_text_offset continue. Each read is fresh; only its revision and references are good."
	default:
		text = "Read the current page again, or a part of it (one way at a time): next_observe as returned, for more controls (after, cursor); next_text as returned, to read on (text_offset); region_ref with expected_revision, for one region; extract, for the rows of a table, list or form"
		if v.AtLeast(V180) {
			text += ", or the articles in view"
		}
		text += "; wait_for, until something is visible (role and name, or evidence)."
		if v.AtLeast(V190) {
			text += " since: your newest revision, returns only what changed: OLD:7 is now NEW:7, listed only if it differs; gone lists numbers that went; text begins at byte text_starts_at, unchanged before it."
		}
		text += " Every answer has a new revision; older references are dead. What did not fit is counted (omitted_*), never absent."
	}
	return "Read the page", text
}
