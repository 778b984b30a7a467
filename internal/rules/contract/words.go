package contract

// describe is what a model is told of a version: what the schema cannot say.
func describe(name string, v Version) (title, text string) {
	switch name {
	case Navigate:
		return "Open a page", "Open one public https:// URL on an origin of this session and return the page once it has settled."
	case Act:
		text = "Do one thing to one element of the newest observation: click; type (replaces a field's text with value); select (value or label of an option); check; press (key); scroll (delta_y pixels). Everything but scrolling waits for the owner's approval."
		if v.AtLeast(V170) {
			text += " ref is an element's, never a region's. postcondition names what you expect to see afterwards; the answer's condition says whether it was seen, and proves nothing else."
		}
		if v.AtLeast(V190) {
			text += " An element that is blocked cannot be used now; one that scrolls is scrolled by its own ref."
		}
		return "Act on the page", text
	case Upload:
		return "Choose an image", "Put one image that the owner attached to this session into a file control of the newest observation: ref is a file field's, or that of a control that asks for a file. Always waits for the owner's approval. The site may send the file at once; publishing is another act. image_id comes from the owner; without a good one the answer lists those there are."
	}
	switch {
	case v == V100:
		text = "Read the current page again: its address, title, text and controls, with a new revision and new references."
	case v == V110:
		text = "Read a slice of the current page: controls from element_offset, text from text_offset (characters). next_element_offset and next_text_offset continue. Each read is fresh; only its revision and references are good."
	default:
		text = "Read the current page again, or one part of it (use one way at a time): next_observe as returned, to see more controls (after, cursor); next_text as returned, to read on (text_offset); region_ref with expected_revision, to read one region; extract, for the rows of a table, list or form"
		if v.AtLeast(V180) {
			text += ", or the articles in view"
		}
		text += "; wait_for, to wait until something is visible (role and name, or evidence)."
		if v.AtLeast(V190) {
			text += " since: your newest revision, returns only what changed: an element you know as OLD:7 is now NEW:7, listed only if it differs; gone lists numbers that went; text begins at byte text_starts_at, and all before it is as you read it."
		}
		text += " Every answer has a new revision; older references are dead. What did not fit is counted (omitted_*), never absent."
	}
	return "Read the page", text
}
