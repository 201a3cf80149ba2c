package rules

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPlainPrefixEndsBeforeWhatJSONEscapes(t *testing.T) {
	t.Parallel()
	slow := func(s string) int {
		for i := range len(s) {
			if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
				return i
			}
		}
		return len(s)
	}
	for length := range 27 {
		for at := range length + 1 {
			for c := range 256 {
				for _, around := range []byte{' ', '!', '#', '[', ']', '~', 0x7f} {
					s := []byte(strings.Repeat(string(around), length))
					if at < length {
						s[at] = byte(c)
					}
					if got, want := plainPrefix(string(s)), slow(string(s)); got != want {
						t.Fatalf("plainPrefix(%q) = %d, want %d", s, got, want)
					}
				}
			}
		}
	}
}
