package isolate_test

import (
	"testing"

	"keep-proxy/cli/isolate"
)

func TestAgree(t *testing.T) {
	for _, c := range []struct {
		what, said, found string
		want              bool
	}{
		{"the same name", "api.shop.test", "api.shop.test", true},
		{"another case", "API.shop.test", "api.Shop.test", true},
		{"a dot at the end of what was said", "api.shop.test.", "api.shop.test", true},
		{"a dot at the end of what was found", "api.shop.test", "api.shop.test.", true},
		{"a search domain was appended", "api", "api.shop.test", true},
		{"a search domain was appended to a name with dots", "api.eu", "api.eu.shop.test", true},
		{"another name", "api.shop.test", "pay.shop.test", false},
		{"a name below", "eu.api.shop.test", "api.shop.test", false},
		{"a name above", "shop.test", "api.shop.test", false},
		{"a label is longer", "api.shop", "api.shopping.test", false},
		{"a letter that folds to another", "\u212Aiosk.test", "kiosk.test", false},
		{"nothing was said", "", "api.shop.test", false},
		{"a dot was said", ".", "api.shop.test", false},
		{"nothing was found", "api.shop.test", "", false},
		{"neither", "", "", false},
		{"an address was said", "198.18.0.2", "198.18.0.2.shop.test", false},
		{"a port was said", "api.shop.test:443", "api.shop.test", false},
		{"what doesn't fit into a request", "api.shop.test\r\n", "api.shop.test\r\n", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := isolate.Agree(c.said, c.found); got != c.want {
				t.Errorf("Agree(%q, %q) = %v", c.said, c.found, got)
			}
		})
	}
}
