package app

import (
	"bytes"
	"maps"
	"net/url"
	"slices"

	"keep-proxy/rules"
)

// keeps notes which parts of a request are stored as they came.
func (x *Explained) keeps(asked, stored *rules.Request) {
	note := func(part string, same bool) {
		if same {
			x.Kept = append(x.Kept, part)
		} else {
			x.Masked = append(x.Masked, part)
		}
	}
	was, now := partsOf(asked), partsOf(stored)
	note("path", was.Path == now.Path)
	query, kept := was.Query(), now.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		note("query "+name, slices.Equal(query[name], kept[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(asked.Header)) {
		note("header "+name, slices.Equal(asked.Header[name], stored.Header[name]))
	}
	if asked.HasBody() {
		note("body", bytes.Equal(asked.Body(), stored.Body()))
	}
}

// partsOf parts a request's address; an address that can't be read has none.
func partsOf(r *rules.Request) *url.URL {
	u, err := url.Parse(r.URL())
	if err != nil {
		return &url.URL{}
	}
	return u
}
