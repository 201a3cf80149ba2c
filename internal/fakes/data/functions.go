package data

import (
	"crypto/md5"  //nolint:gosec // see md5
	"crypto/sha1" //nolint:gosec // git names blobs by SHA-1; nothing is authenticated with it
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// functions are those that expressions have besides CEL's own.
var functions = map[string]struct {
	arguments int
	do        func(a []any) (any, error)
}{
	"text": {1, func(a []any) (any, error) {
		if a[0] == nil || a[0] == (absent{}) {
			return "", nil
		}
		return fmt.Sprint(a[0]), nil
	}},
	"nested":  {2, func(a []any) (any, error) { return nestedForm(a[0], a[1]) }},
	"merge":   {2, func(a []any) (any, error) { return merged(a[0], a[1]), nil }},
	"only":    {2, func(a []any) (any, error) { return only(a[0], a[1], true), nil }},
	"without": {2, func(a []any) (any, error) { return only(a[0], a[1], false), nil }},
	"sum": {1, func(a []any) (any, error) {
		total := int64(0)
		list, _ := a[0].([]any)
		for _, n := range list {
			n, _ := n.(int64)
			total += n
		}
		return total, nil
	}},
	"parse_json": {1, func(a []any) (any, error) { return parseJSON([]byte(fmt.Sprint(a[0]))) }},
	"to_json": {1, func(a []any) (any, error) {
		out, err := json.Marshal(stored(a[0]))
		return string(out), err
	}},
	"sha256": {1, func(a []any) (any, error) { return digest([]byte(fmt.Sprint(a[0]))), nil }},
	"md5": {1, func(a []any) (any, error) {
		sum := md5.Sum([]byte(fmt.Sprint(a[0]))) //nolint:gosec // as object stores name content
		return hex.EncodeToString(sum[:]), nil
	}},
	"git_blob_sha": {1, func(a []any) (any, error) {
		content := fmt.Sprint(a[0])
		sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)) //nolint:gosec // as above
		return hex.EncodeToString(sum[:]), nil
	}},
	"rfc3339": {1, func(a []any) (any, error) {
		return timed(a[0], func(t time.Time) any { return t.Format(time.RFC3339) })
	}},
	"rfc2822": {1, func(a []any) (any, error) {
		return timed(a[0], func(t time.Time) any { return t.Format(time.RFC1123Z) })
	}},
	"millis": {1, func(a []any) (any, error) { return timed(a[0], func(t time.Time) any { return t.UnixMilli() }) }},
}

func timed(v any, as func(time.Time) any) (any, error) {
	at, ok := v.(time.Time)
	if !ok {
		return nil, fmt.Errorf("%v is no time", v)
	}
	return as(at.UTC()), nil
}

// merged is a with the members of b, at every depth.
func merged(a, b any) any {
	left, one := a.(map[string]any)
	right, two := b.(map[string]any)
	if !one || !two {
		return b
	}
	out := maps.Clone(left)
	for name, v := range right {
		if before, ok := out[name]; ok {
			v = merged(before, v)
		}
		out[name] = v
	}
	return out
}

// only is a map with the named members alone, or without them.
func only(m, names any, keep bool) any {
	list, _ := names.([]any)
	members, _ := m.(map[string]any)
	members = maps.Clone(members)
	maps.DeleteFunc(members, func(name string, _ any) bool { return slices.Contains(list, any(name)) != keep })
	return members
}
