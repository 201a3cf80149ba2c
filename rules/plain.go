package rules

import "unicode/utf8"

// Eight characters at once, one in each byte of a word.
const (
	wordOnes  = 0x0101010101010101
	wordHighs = 0x8080808080808080
)

// plainPrefix is how many characters of s come before the first that JSON escapes in a
// string, or that isn't ASCII.
func plainPrefix(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		e := s[i : i+8]
		w := uint64(e[0]) | uint64(e[1])<<8 | uint64(e[2])<<16 | uint64(e[3])<<24 |
			uint64(e[4])<<32 | uint64(e[5])<<40 | uint64(e[6])<<48 | uint64(e[7])<<56
		// Of each byte that must stop here the high bit is set; of others perhaps too, if a
		// lower byte stops.
		stops := w | below(w, ' ') | below(w^'"'*wordOnes, 1) | below(w^'\\'*wordOnes, 1)
		if stops&wordHighs != 0 {
			break
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// below sets the high bit of the lowest byte of w that is less than n, if there is one
// and n is at most 128; bits above it mean nothing.
func below(w uint64, n byte) uint64 { return (w - uint64(n)*wordOnes) &^ w }
