package proxy

import (
	"errors"
	"net/url"

	"keep-proxy/internal/names"
)

// errItemName says what an item's name may be.
var errItemName = errors.New("an item's name is 1 to 256 bytes of UTF-8 in percent-encoding, without control characters, " +
	"without white space at its ends, and doesn't begin with \"once:\"")

// itemName reads an item's name in percent-encoding (RFC 3986 §2.1).
func itemName(text string) (string, error) {
	name, err := url.PathUnescape(text)
	if err != nil {
		return "", errItemName
	}
	if what, _ := names.ItemFault(name); what != "" {
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
			"; nothing was sent. "+oneName(c.many))
	}
	return nil
}

// oneName says how a request comes to the item that it means.
func oneName(many bool) string {
	if many {
		return "That is the user of its proxy address: name the item there or in Keep-Item."
	}
	return "Open a run with items: many to work on several."
}
