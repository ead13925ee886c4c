// Package brief cuts texts to what there is room for.
package brief

// MaxNote is how many bytes the note of an event may have: the API server refuses
// longer ones.
const MaxNote = 1024

// Note cuts a text to what the note of an event can hold.
func Note(s string) string { return Text(s, MaxNote) }

// Text cuts a text to at most limit bytes, at the end of a character, and says so
// by three points.
func Text(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const more = "..."
	cut := max(limit-len(more), 0)
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + more
}
