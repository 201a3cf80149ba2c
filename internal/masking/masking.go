// Package masking masks credentials that were sent, should an API say them again in what is kept
// of its answers. It knows the spellings that URLs and JSON have for the same text.
//
// # Failure
//
// A credential of less than 8 bytes isn't looked for, as it would be found everywhere. Nor is one in a content coding,
// an encryption or a digest of the API's. What is masked can't be had back: the answer itself is left as it was.
package masking

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Masked stands where a credential was.
const Masked = "<secret>"

// shortest is the length, in bytes, below which a credential is not looked for.
const shortest = 8

// Secrets are credentials that were sent, each the value of a header field, or a part of one.
type Secrets []string

// values are the secrets, what follows the scheme in them ("Bearer x"), and what that is Base64 of.
func (s Secrets) values() []string {
	var all []string
	for _, v := range s {
		token := afterScheme(v)
		for _, one := range []string{v, token, password(token)} {
			if len(one) >= shortest && !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return all
}

func afterScheme(v string) string {
	_, token, _ := strings.Cut(v, " ")
	return strings.TrimSpace(token)
}

// password is the one in the token of a Basic scheme (RFC 7617). Where that is too short to be looked for, the user's
// name is the credential: some APIs take their key there. Other names are told in most answers.
func password(token string) string {
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(token, "="))
	user, password, ok := strings.Cut(string(plain), ":")
	switch {
	case err != nil || !ok || !utf8.Valid(plain):
		return ""
	case len(password) < shortest:
		return user
	}
	return password
}

// Text is text without them.
func (s Secrets) Text(text string) string {
	if text == "" || len(s) == 0 {
		return text // As are most reasons.
	}
	content := []byte(text)
	if out := s.Bytes(content); !same(out, content) {
		return string(out)
	}
	return text
}

// In reports whether any of them is in text.
func (s Secrets) In(text string) bool { return s.Text(text) != text }

// Bytes is content without them: content itself if there is none in it.
func (s Secrets) Bytes(content []byte) []byte {
	for _, v := range s.values() {
		// As it is first: what was spelt could be a spelling itself.
		if bytes.Contains(content, []byte(v)) {
			content = bytes.ReplaceAll(content, []byte(v), []byte(Masked))
		}
		content = respelt(content, v)
	}
	return content
}

// Header is the fields without them: h itself if there are none in it.
func (s Secrets) Header(h http.Header) http.Header {
	if len(s) == 0 {
		return h
	}
	out, changed := h, false
	for name, values := range h {
		masked := slices.Clone(values)
		for i, v := range values {
			masked[i] = s.Text(v)
		}
		if slices.Equal(masked, values) {
			continue
		}
		if !changed {
			out, changed = maps.Clone(h), true
		}
		out[name] = masked
	}
	return out
}

// same reports whether two slices are one.
func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// respelt masks a credential in the spellings of URLs and JSON, also in part.
func respelt(content []byte, secret string) []byte {
	var out []byte
	done := 0
	look := spelling{text: content, secret: secret}
	for i := 0; i < len(content); {
		c := content[i]
		if c != secret[0] && c != '%' && c != '\\' && c != '+' {
			i++
			continue
		}
		end := look.from(i, 0)
		if end == 0 {
			i++
			continue
		}
		out = append(append(out, content[done:i]...), Masked...)
		i, done = end, end
	}
	if done == 0 {
		return content
	}
	return append(out, content[done:]...)
}

// spelling looks for a secret in a text. What it has found to lead nowhere it doesn't try again. In a row of
// backslashes each may be one of the secret's, or begin an escape.
type spelling struct {
	text   []byte
	secret string
	vain   map[[2]int]bool
}

// from is where the spelling ends of which text[at:] holds what is left behind
// secret[:told]; 0 if it holds none.
func (s *spelling) from(at, told int) int {
	for told < len(s.secret) {
		if at == len(s.text) {
			return 0
		}
		plain := s.text[at] == s.secret[told] || s.text[at] == '+' && s.secret[told] == ' '
		said, length := unescaped(s.text[at:])
		escaped := length > 0 && strings.HasPrefix(s.secret[told:], said)
		switch {
		case plain && escaped: // The credential itself may hold what looks like an escape.
			return s.either(at, told, length, len(said))
		case escaped:
			at, told = at+length, told+len(said)
		case plain:
			at, told = at+1, told+1
		default:
			return 0
		}
	}
	return at
}

// either is from where an escape and the text as it stands both fit.
func (s *spelling) either(at, told, length, said int) int {
	if s.vain[[2]int{at, told}] {
		return 0
	}
	if end := s.from(at+length, told+said); end > 0 {
		return end
	}
	end := s.from(at+1, told+1)
	if end == 0 {
		if s.vain == nil {
			s.vain = map[[2]int]bool{}
		}
		s.vain[[2]int{at, told}] = true
	}
	return end
}

// unescaped is what the escape says with which text begins, and its length; 0 for none.
func unescaped(text []byte) (said string, length int) {
	if len(text) < 2 {
		return "", 0
	}
	switch text[0] {
	case '%': // RFC 3986 §2.1
		var b [1]byte
		if len(text) < 3 {
			return "", 0
		}
		if _, err := hex.Decode(b[:], text[1:3]); err != nil {
			return "", 0
		}
		return string(b[:]), 3
	case '\\': // RFC 8259 §7
		if text[1] == 'u' {
			return unescapedRune(text)
		}
		if i := strings.IndexByte(`"\/bfnrt`, text[1]); i >= 0 {
			return "\"\\/\b\f\n\r\t"[i : i+1], 2
		}
	}
	return "", 0
}

// unescapedRune reads \u00e9, and two of them for what is beyond 16 bits.
func unescapedRune(text []byte) (said string, length int) {
	r, ok := unit(text)
	if !ok {
		return "", 0
	}
	if utf16.IsSurrogate(r) {
		low, _ := unit(text[6:])
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return "", 0
		}
		return string(r), 12
	}
	return string(r), 6
}

// unit is the 16 bits of the escape with which text begins.
func unit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}
