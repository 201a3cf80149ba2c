package strict

// Classes of bytes, as bits of a table.
const (
	tokenChar = 1 << iota // RFC 9110 §5.6.2
	valueChar             // RFC 9110 §5.5: visible, obs-text, space and tab
	hostChar              // RFC 3986 §3.2.2, without escapes
	hexChar
	digitChar
)

var classes = func() (t [256]uint8) {
	for c := range 256 {
		b := byte(c)
		digit := '0' <= b && b <= '9'
		alpha := 'a' <= b|0x20 && b|0x20 <= 'z'
		if digit || alpha {
			t[c] |= tokenChar | hostChar
		}
		if digit {
			t[c] |= digitChar | hexChar
		}
		if 'a' <= b|0x20 && b|0x20 <= 'f' {
			t[c] |= hexChar
		}
		if b >= ' ' && b != 0x7f || b == '\t' {
			t[c] |= valueChar
		}
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] |= tokenChar
	}
	for _, c := range "-._~!$&'()*+,;=" {
		t[c] |= hostChar
	}
	return t
}()

// all reports whether every byte of b is of a class.
func all(b []byte, class uint8) bool {
	for _, c := range b {
		if classes[c]&class == 0 {
			return false
		}
	}
	return true
}

// isToken reports whether b is a token (RFC 9110 §5.6.2).
func isToken(b []byte) bool { return len(b) > 0 && all(b, tokenChar) }

// is compares b with a word in lower case, whatever the case of b.
func is(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// trim removes spaces and tabs at both ends (RFC 9110 §5.6.3).
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// number reads digits without sign; ok is false beyond 18 of them.
func number(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 || !all(b, digitChar) {
		return 0, false
	}
	for _, c := range b {
		n = n*10 + int64(c-'0')
	}
	return n, true
}
