package hostile

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/testca"
)

// leastHTTP2 is how many vectors there must be.
const leastHTTP2 = 70

// h2vector is one line of testdata/http2.tsv.
type h2vector struct {
	vector
	fields, trailers []string
	data             string
	statuses         []int
}

func loadH2(t *testing.T) (all []h2vector) {
	t.Helper()
	for _, cells := range tableOf(t, "testdata/http2.tsv", 6) {
		v := h2vector{vector: vector{name: cells[0], section: cells[1]}, data: cells[4]}
		statuses, more, _ := strings.Cut(cells[2], " ")
		if more != "" {
			v.expected = parseExpected(t, "200 "+more)
		}
		for part := range strings.SplitSeq(statuses, ",") {
			if part == "reset" {
				v.statuses = append(v.statuses, reset)
			} else {
				v.statuses = append(v.statuses, number(t, part))
			}
		}
		for f := range strings.SplitSeq(cells[3], "|") {
			v.fields = append(v.fields, unescape(t, f))
		}
		if cells[5] != "" {
			for f := range strings.SplitSeq(cells[5], "|") {
				v.trailers = append(v.trailers, unescape(t, f))
			}
		}
		all = append(all, v)
	}
	return all
}

// TestHTTP2 tries every vector inside of TLS, as a read, an ignored request and a
// mutation.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	all := loadH2(t)
	if len(all) < leastHTTP2 {
		t.Fatalf("%d vectors, want at least %d", len(all), leastHTTP2)
	}
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "upstreams.pem")
	if err := os.WriteFile(file, ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	// What has begun to be streamed may end late; no mutation may be blamed for it.
	mutations, streams := newTLSRecorder(t, ca), newTLSRecorder(t, ca)
	w := newWorld(t, file, mutations.authority(), streams.authority())
	clients := map[*recorder]*h2client{}
	defer func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}()
	for i, v := range all {
		for _, k := range v.kinds() {
			upstream := streams
			if k.name == "mutation" {
				upstream = mutations
			}
			c := clients[upstream]
			if c == nil || c.dead {
				if c != nil {
					_ = c.Close()
				}
				c = w.tunnelH2(t, upstream.authority())
				clients[upstream] = c
			}
			s := setting{k, true, upstream.authority(), fmt.Sprintf(`{"to":"h2-%d"}`, i)}
			if err := v.try(c, upstream, s); err != nil {
				t.Errorf("%s (%s), %s: %v", v.name, v.section, k.name, err)
			}
		}
	}
	w.stop()
	for _, upstream := range []*recorder{mutations, streams} {
		upstream.close()
		for _, q := range upstream.take() {
			t.Errorf("a request at fault was whole: %q", q.raw)
		}
	}
}

// kinds is as what a vector is tried: one that has a method of its own just once.
func (v *h2vector) kinds() []kind {
	if strings.Contains(strings.Join(v.fields, "|"), "{M}") {
		return kinds
	}
	return kinds[:1]
}

// filled puts a setting's values into fields.
func filled(fields []string, s setting) []string {
	out := make([]string, 0, len(fields))
	for _, f := range fields {
		out = append(out, strings.ReplaceAll(s.fill(f), "{LONG}", strings.Repeat("a", 80<<10)))
	}
	return out
}

func (v *h2vector) try(c *h2client, upstream *recorder, s setting) error {
	before := upstream.bytes()
	c.head(filled(v.fields, s), v.data == "" && v.trailers == nil)
	if v.data != "" {
		c.data(v.data, s.body, v.trailers == nil)
	}
	if v.trailers != nil {
		c.head(filled(v.trailers, s), true)
	}
	got := c.outcome()
	c.stream += 2
	if !slices.Contains(v.statuses, got) {
		return fmt.Errorf("came to %d, want %v (%d is a reset)", got, v.statuses, reset)
	}
	if got == http.StatusOK {
		return v.rebuilt(upstream.take(), s)
	}
	if arrived := upstream.bytes() - before; arrived > 0 && s.name == "mutation" {
		return fmt.Errorf("%d bytes arrived of what was refused", arrived)
	}
	return nil
}
