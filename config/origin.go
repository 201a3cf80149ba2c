package config

import (
	"slices"
	"strings"
)

// origin says where a value came from, so that a problem found after merging
// can still point at it.
type origin struct {
	source       string
	line, column int
	value        string
}

// report collects problems and the origin of every value that was given.
type report struct {
	problems []Problem
	origins  map[string]origin
	broken   map[string]bool // keys whose value could not be read
}

func newReport() *report {
	return &report{origins: map[string]origin{}, broken: map[string]bool{}}
}

// unreadable adds a problem with a value that could not be read. Checks that
// involve the key are then left out, since they would judge its default.
func (r *report) unreadable(key string, at origin, f *fault) {
	r.broken[key] = true
	r.add(key, at, f)
}

// rejected adds a problem with a value that was read. keys are the keys that
// the check involves, the one to change first; the problem points at the first
// that was given.
func (r *report) rejected(f *fault, keys ...string) {
	if slices.ContainsFunc(keys, r.touchesBroken) {
		return
	}
	for _, key := range keys {
		if at, given := r.lookup(key); given {
			r.add(key, at, f)
			return
		}
	}
	r.add(keys[0], origin{source: "defaults"}, f)
}

func (r *report) add(key string, at origin, f *fault) {
	value := at.value
	if value != "" && isSecretKey(key) {
		value = Redacted
	}
	r.problems = append(r.problems, Problem{
		Source: at.source, Line: at.line, Column: at.column,
		Key: key, Value: value, Text: f.text, Fix: f.fix,
	})
}

// lookup finds the origin of key or of what holds it.
func (r *report) lookup(key string) (origin, bool) { return held(r.origins, key) }

// touchesBroken reports whether key, what holds it, or something inside it
// could not be read.
func (r *report) touchesBroken(key string) bool {
	for b := range r.broken {
		if b == key || within(b, key) || within(key, b) {
			return true
		}
	}
	return false
}

func within(inner, outer string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// isSecretKey reports whether what stands at key may hold a credential, even a
// misplaced one.
func isSecretKey(key string) bool {
	return strings.HasPrefix(key, "connectors.settings[") && strings.Contains(key, "].credentials") ||
		strings.HasPrefix(key, "proxy.upstream_proxy") || strings.HasPrefix(key, "notify.webhooks[") ||
		strings.HasPrefix(key, "admin.tokens[") || key == "admin.public_url"
}

// fault is what is wrong with a value and how to mend it.
type fault struct {
	text, fix string
}
