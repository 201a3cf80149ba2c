package config

import (
	"slices"
	"strings"
)

// Bundled selects bundled connectors: all, none (the zero value), or those
// named.
type Bundled struct {
	// All selects every bundled connector; Names is then empty.
	All bool
	// Names selects these.
	Names []string
}

// Includes reports whether the bundled connector name is selected.
func (b Bundled) Includes(name string) bool {
	return b.All || slices.Contains(b.Names, name)
}

// String returns true, false, or the names joined with commas: the forms that
// the environment variable takes.
func (b Bundled) String() string {
	switch {
	case b.All:
		return "true"
	case len(b.Names) == 0:
		return "false"
	default:
		return strings.Join(b.Names, ",")
	}
}
