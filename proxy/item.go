package proxy

import (
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of an item's name that a request gives, as the admin API has them.
const (
	maxItemName = 256
	onceItem    = "once:"
)

// errItemName says what an item's name may be.
var errItemName = errors.New("an item's name is 1 to 256 bytes of UTF-8 in percent-encoding, without control characters, " +
	"without white space at its ends, and doesn't begin with \"once:\"")

// itemName reads an item's name in percent-encoding (RFC 3986 §2.1).
func itemName(text string) (string, error) {
	name, err := url.PathUnescape(text)
	switch {
	case err != nil, name == "", len(name) > maxItemName, !utf8.ValidString(name), strings.TrimSpace(name) != name,
		strings.HasPrefix(name, onceItem), strings.ContainsFunc(name, func(r rune) bool {
			return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
		}):
		return "", errItemName
	}
	return name, nil
}

// nameItem takes the item of a request from its Keep-Item fields. A run of one item may
// be told its own name only; where the proxy's user names an item, both must agree.
func nameItem(x *exchange, values []string) *refusal {
	if len(values) == 0 {
		return nil
	}
	if len(values) > 1 {
		return refuse(problemAmbiguous, "Keep-Item is given more than once; nothing was sent.")
	}
	name, err := itemName(values[0])
	if err != nil {
		return refuse(problemIdentity, "Keep-Item: "+err.Error()+"; nothing was sent.")
	}
	c := &x.caller
	switch {
	case c.unmanaged, c.many && c.item == "":
		c.item = name
	case c.item != name:
		return refuse(problemIdentity, "Keep-Item names "+quoted(name)+", but this request belongs to item "+quoted(c.item)+
			"; nothing was sent. Open a run with items: many to work on several.")
	}
	return nil
}
