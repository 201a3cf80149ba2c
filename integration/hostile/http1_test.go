package hostile

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// leastHTTP1 is how many vectors there must be.
const leastHTTP1 = 300

// TestHTTP1 tries every vector as a read, an ignored request and a mutation, plain and
// inside of a tunnel.
func TestHTTP1(t *testing.T) {
	t.Parallel()
	vectors := loadVectors(t, "testdata/http1.tsv")
	if len(vectors) < leastHTTP1 {
		t.Fatalf("%d vectors, want at least %d", len(vectors), leastHTTP1)
	}
	whole, partial := newRecorder(t), newRecorder(t)
	w := newWorld(t, "", whole.authority(), partial.authority())
	for i, v := range vectors {
		for _, k := range kinds {
			for _, tunnel := range v.tunnels() {
				s := setting{k, tunnel, whole.authority(), fmt.Sprintf(`{"to":"%d-%t"}`, i, tunnel)}
				upstream := whole
				if v.partial && k.name != "mutation" {
					// What has begun to be streamed ends when it ends; no later vector may
					// be blamed for it.
					upstream = partial
					s.authority = partial.authority()
				}
				if err := v.try(t, w, upstream, s); err != nil {
					t.Errorf("%s (%s), %s, tunnel %t: %v", v.name, v.section, k.name, tunnel, err)
				}
			}
		}
	}
	w.stop()
	partial.close()
	for _, q := range partial.take() {
		t.Errorf("a request at fault was whole: %q", q.raw)
	}
}

// tunnels says whether a vector is tried outside of a tunnel and inside.
func (v *vector) tunnels() []bool {
	switch v.only {
	case "plain":
		return []bool{false}
	case "tunnel":
		return []bool{true}
	}
	return []bool{false, true}
}

// status is what a setting shall be answered with.
func (v *vector) status(s setting) []int {
	switch {
	case v.inTunnel != 0 && s.tunnel:
		return []int{v.inTunnel}
	case v.read != 0 && s.name == "read":
		return []int{v.read}
	}
	return v.statuses
}

// try sends one vector and holds the answer, and what arrived, against what is
// expected.
func (v *vector) try(t *testing.T, w *world, upstream *recorder, s setting) error {
	t.Helper()
	before := upstream.bytes()
	c := w.dial(t)
	if s.tunnel {
		c = w.tunnel(t, s.authority)
	}
	defer func() { _ = c.Close() }()
	_, _ = c.Write([]byte(s.fill(v.text)))
	if v.fin {
		c.finish()
	}
	a, err := c.read()
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	want := v.status(s)
	if !slices.Contains(want, a.status) {
		return fmt.Errorf("answered with %d, want %v: %s", a.status, want, a.body)
	}
	if v.next != 0 {
		second, err := c.read()
		if err != nil || second.status != v.next {
			return fmt.Errorf("then %v, %w", second, err)
		}
	}
	if a.status == http.StatusOK {
		return v.rebuilt(upstream.take(), s)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		return fmt.Errorf("the refusal is %q: %s", got, a.body)
	}
	if arrived := upstream.bytes() - before; arrived > 0 && (!v.partial || s.name == "mutation") {
		return fmt.Errorf("%d bytes arrived of what was refused, %d requests", arrived, len(upstream.take()))
	}
	return nil
}

// rebuilt holds the one request that arrived against its expected form.
func (v *vector) rebuilt(all []*recorded, s setting) error {
	if len(all) != 1 {
		return fmt.Errorf("%d requests arrived, want 1", len(all))
	}
	target := s.path
	if v.target != "" {
		target = s.fill(v.target)
	}
	fields := make([]string, 0, len(v.fields))
	for _, f := range v.fields {
		name, value, _ := strings.Cut(f, ":")
		fields = append(fields, strings.ToLower(name)+": "+strings.TrimSpace(mustUnescape(value)))
	}
	method := s.method
	if v.method != "" {
		method = v.method
	}
	if err := all[0].held(method+" "+target+" HTTP/1.1", s.authority, s.body, fields); err != nil {
		return err
	}
	for _, f := range v.trailers {
		name, value, _ := strings.Cut(f, ": ")
		// A mutation is read whole, and its trailers end with it.
		if got := all[0].trailer.Get(name); s.name != "mutation" && got != value {
			return fmt.Errorf("trailer %s: %q, want %q", name, got, value)
		}
	}
	return nil
}
