package upstream

import (
	"testing"
	"time"

	"keep-proxy/internal/clock"
)

// What an upstream says of its connection is heeded before a mutation, which can't be sent twice, is put on it.
func TestAConnectionIsUsedAsItsUpstreamSays(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, c := range map[string]struct {
		fields string
		// idle are the times between requests, kept says whether the next one goes over the same connection.
		idle []time.Duration
		kept []bool
	}{
		"nothing is said":            {"", []time.Duration{3 * second}, []bool{true}},
		"some time before its end":   {"Keep-Alive: timeout=5\r\n", []time.Duration{4*second - 1, 4 * second}, []bool{true, false}},
		"a second is no time":        {"Keep-Alive: timeout=1\r\n", []time.Duration{1, 2}, []bool{false, false}},
		"none at all":                {"Keep-Alive: timeout=0\r\n", []time.Duration{1}, []bool{false}},
		"as many requests as it may": {"Keep-Alive: Max=3\r\n", []time.Duration{0, 0, 0, 0}, []bool{true, true, false, true}},
		"both, in two fields":        {"Keep-Alive: max=2\r\nKeep-Alive: Timeout=3\r\n", []time.Duration{second, 0, 2 * second}, []bool{true, false, false}},
		"none more":                  {"Keep-Alive: timeout=9, max=0\r\n", []time.Duration{0}, []bool{false}},
		"what can't be read":         {"Keep-Alive: timeout=soon, max, 7, max=-1\r\n", []time.Duration{3 * second}, []bool{true}},
		"longer than we keep it":     {"Keep-Alive: timeout=2000000000\r\n", []time.Duration{9 * second, 10 * second}, []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := clock.NewFake(time.Now())
			u := serve(t, nil, answeringAll("HTTP/1.1 200 OK\r\n"+c.fields+"Content-Length: 2\r\n\r\nok"))
			s := sender(t, Config{Clock: fake, FreshFor: 10 * second})
			send(t, s, post(u.url("http", "/"), "x")).check(t, whole)
			for i, idle := range c.idle {
				fake.Advance(idle)
				want := whole
				want.Reused = c.kept[i]
				send(t, s, post(u.url("http", "/"), "x")).check(t, want)
			}
			if n := int(u.sends.Load()); n != len(c.idle)+1 {
				t.Errorf("%d requests came", n)
			}
		})
	}
}
