package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
)

// lending is a store of which commands that read the same version of a record get drafts of one
// record. Real stores share so, too: nobody may change what is shared.
type lending struct {
	ledger.Store
	mu   sync.Mutex
	lent map[string]lent
}

// lent is something that was given out, and what it said then.
type lent struct {
	what any
	said string
}

// Update implements ledger.Store.
func (s *lending) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	return s.Store.Update(ctx, func(tx ledger.Tx) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return fn(lendingTx{tx, s})
	})
}

type lendingTx struct {
	ledger.Tx
	s *lending
}

func (t lendingTx) Mutation(k ledger.Key) (*ledger.Mutation, error) {
	m, err := t.Tx.Mutation(k)
	if err != nil {
		return nil, err
	}
	return lend(t.s, m.ID, m.Version, m).Draft(), nil
}

func (t lendingTx) Run(id string) (*ledger.Run, error) {
	r, err := t.Tx.Run(id)
	if err != nil {
		return nil, err
	}
	return lend(t.s, r.ID, r.Version, r).Draft(), nil
}

func (t lendingTx) Item(workflow, item string) (*ledger.Item, error) {
	i, err := t.Tx.Item(workflow, item)
	if err != nil {
		return nil, err
	}
	return lend(t.s, i.Item, i.Version, i).Draft(), nil
}

// lend gives what is lent under this name, with s.mu held.
func lend[T any](s *lending, name string, version int64, fresh *T) *T {
	name = fmt.Sprintf("%T %s %d", fresh, name, version)
	if _, is := s.lent[name]; !is {
		s.lent[name] = lent{fresh, said(fresh)}
	}
	known, _ := s.lent[name].what.(*T)
	return known
}

func said(what any) string {
	text, err := json.Marshal(what)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// wantUnchanged asserts that what was lent says what it said.
func (s *lending) wantUnchanged(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, l := range s.lent {
		if now := said(l.what); now != l.said {
			t.Errorf("%s says\n%s\nand said\n%s", name, now, l.said)
		}
	}
}

// manyFields answers with a head in which there is something to take out, with trailers, and
// with as much content as is asked for.
func manyFields(rw http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	h := rw.Header()
	h["Set-Cookie"], h["Via"] = []string{"a=1", "b=2"}, make([]string, 1, 4)
	h["Via"][0] = "1.0 cache"
	for _, own := range []string{dispatch.FieldMutation, dispatch.FieldState, dispatch.FieldReplayed, dispatch.FieldScope, "Alt-Svc", "X-Nominated"} {
		h.Set(own, "theirs")
	}
	if r.Header.Get("X-Trailed") == "" {
		h.Set("Connection", "X-Nominated") // With which no trailers are kept.
	}
	h.Set("Content-Type", "application/json")
	h.Set("Trailer", "Sum")
	rw.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(rw, `{"key":"k","id":1}`+strings.Repeat(" ", len(r.Header.Get("X-Long"))<<10))
	h.Set("Sum", "7")
}

// A replay is given from a record that shares with others: whatever becomes of it, that record
// stays as it was, and so do item and run.
func TestAReplayLeavesWhatItSharesAsItWas(t *testing.T) {
	t.Parallel()
	verifying := func(how string) string {
		return changed("    identity: {to: json.to}\n    reconcile:\n      - probe:", "    identity: {to: json.to}\n    verify_on_replay: "+how+"\n    reconcile:\n      - probe:")
	}
	trailed := []string{"X-Trailed", "1", "TE", "trailers"}
	disagrees := func(c *Config) { c.Inliner = &goneInliner{} }
	for name, c := range map[string]struct {
		change func(*Config)
		rules  string
		path   string
		later  string
		header []string
		// h2 says that it is asked for over HTTP/2, by no run, or by many at once.
		h2, unmanaged, beside bool
		// asks is how often it is, 3 times unless said.
		asks int
		// status is that of what comes later, 201 unless said.
		status int
	}{
		"as it is":             {},
		"with Via":             {change: func(c *Config) { c.Via = true }},
		"over HTTP/2":          {h2: true},
		"with its trailers":    {header: trailed},
		"over HTTP/2, too":     {header: trailed, h2: true},
		"of a minor change":    {later: `{"to":"x","note":"changed"}`},
		"that may be a repeat": {path: "/again"},
		"of a long answer":     {path: "/again", header: []string{"X-Long", strings.Repeat("x", 100)}},
		"of a secret":          {path: "/hooks/t"},
		"to no run":            {change: func(c *Config) { c.Unmanaged = Unmanaged{"wf", "a"} }, unmanaged: true},
		"to many at once":      {path: "/again", beside: true},
		"that is verified":     {rules: verifying("warn"), change: disagrees, path: "/ask"},
		"that is refused":      {rules: verifying("strict"), change: disagrees, path: "/ask", status: http.StatusFailedDependency},
		"that waits for somebody": {
			rules: verifying("human"), change: disagrees, path: "/ask", status: http.StatusFailedDependency, asks: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s *lending
			lends := func(c *Config) {
				s = &lending{Store: c.Ledger.Store, lent: map[string]lent{}}
				c.Ledger.Store = s
			}
			change := []func(*Config){lends}
			if c.change != nil {
				change = append(change, c.change)
			}
			w := newWorld(t, manyFields, change...)
			if c.rules != "" {
				w.use(c.rules)
			}
			path, first := or(c.path, "/pay"), `{"to":"x"}`
			later := or(c.later, first)
			r := w.open("a")
			wantStatus(t, r.post(path, first, c.header...), http.StatusCreated, false)
			w.end(r)
			for range or(c.asks, 3) {
				r := w.open("a")
				r.client = w.newClient(r.user(), c.h2)
				if c.unmanaged {
					w.end(r)
					r.client = w.newClient(nil, c.h2)
				}
				status := or(c.status, http.StatusCreated)
				beside := make(chan got, 2)
				if c.beside {
					for range cap(beside) {
						go func() { beside <- r.post(path, later, c.header...) }()
					}
					for range cap(beside) {
						wantStatus(t, <-beside, status, true)
					}
				}
				wantStatus(t, r.post(path, later, c.header...), status, status == http.StatusCreated)
				if !c.unmanaged {
					w.end(r)
				}
			}
			if len(s.lent) == 0 {
				t.Error("nothing was lent")
			}
			s.wantUnchanged(t)
			w.wantSends(path, 1)
		})
	}
}

func wantStatus(t *testing.T, g got, status int, replayed bool) {
	t.Helper()
	if g.err != nil || g.status != status || (g.header.Get(dispatch.FieldReplayed) == "true") != replayed {
		t.Errorf("%d, replayed %q, %v: %s", g.status, g.header.Get(dispatch.FieldReplayed), g.err, g.body)
	}
}
