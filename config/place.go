package config

import "strings"

// Place is where a value was given: a file, the environment or a flag. Line and
// Column are 0 outside files.
type Place struct {
	Source       string
	Line, Column int
}

// Place says where key was given or, inside a list, what holds it; the zero Place
// if neither was. It is for problems that only show when the connectors are read.
func (c Config) Place(key string) Place {
	at, _ := held(c.places, key)
	return at
}

// WithConnectors is c with the connectors of another, and their places.
func (c Config) WithConnectors(of Config) Config {
	c.Connectors, c.places = of.Connectors, of.places
	return c
}

// places are the origins without their values, which may be secret; nil for none.
func (r *report) places() map[string]Place {
	if len(r.origins) == 0 {
		return nil
	}
	all := make(map[string]Place, len(r.origins))
	for key, at := range r.origins {
		all[key] = Place{at.source, at.line, at.column}
	}
	return all
}

// held finds what is noted for key or, inside a list, for what holds it: a key
// that is missing in an entry is a problem of the entry. A section is no origin
// of the keys that it does not give.
func held[T any](noted map[string]T, key string) (T, bool) {
	for {
		if at, ok := noted[key]; ok {
			return at, true
		}
		if !strings.Contains(key, "[") {
			var none T
			return none, false
		}
		key = key[:strings.LastIndexAny(key, ".[")]
	}
}
