package ledger

import (
	"slices"
	"strings"
	"time"
)

// Compared is what a caller found by comparing payloads. The zero value covers nothing.
type Compared struct {
	// Payload is the digest of the stored payload, Rule its record's version of the rule.
	Payload string
	Rule    ItemRule
	// Covers says that the stored result answers the claim.
	Covers bool
	// Diff is kept with a mismatch.
	Diff Diff
}

// Diff says how a refused payload differs from the stored one.
type Diff struct {
	At time.Time `json:"at"`
	// Payload is the digest of the refused payload, Run who asked.
	Payload string `json:"payload"`
	Run     string `json:"run,omitempty"`
	// Why says what decided, in a sentence.
	Why     string   `json:"why,omitempty"`
	Changes []Change `json:"changes,omitempty"`
	// More says that there are other changes than those listed.
	More bool `json:"more,omitempty"`
}

// Change is one place in which payloads differ. Values are shortened JSON, with secrets masked.
type Change struct {
	// Place is as a rule writes it, such as json.items[2].price.
	Place string `json:"place"`
	// Kind is "changed", "added" or "removed".
	Kind   string `json:"kind"`
	Stored string `json:"stored,omitempty"`
	Asked  string `json:"asked,omitempty"`
	// Weight is "significant", "minor" or "equivalent".
	Weight string `json:"weight,omitempty"`
}

// String is the change in words.
func (c Change) String() string {
	switch c.Kind {
	case "added":
		return c.Place + " " + c.Asked + " is new"
	case "removed":
		return c.Place + " " + c.Stored + " is gone"
	default:
		return c.Place + " was " + c.Stored + ", is " + c.Asked
	}
}

// weightSignificant marks the changes that count.
const weightSignificant = "significant"

// place is where the change is and of what kind, without a value.
func (c Change) place() string {
	switch c.Kind {
	case "added":
		return c.Place + " is new"
	case "removed":
		return c.Place + " is gone"
	default:
		return c.Place + " differs"
	}
}

// String is the difference in words: what counts, if anything of it does.
func (d *Diff) String() string { return d.words(Change.String) }

// Places is String without the values, for whoever may not see contents.
func (d *Diff) Places() string { return d.words(Change.place) }

func (d *Diff) words(of func(Change) string) string {
	if d == nil {
		return ""
	}
	counts := func(c Change) bool { return c.Weight == weightSignificant }
	some := slices.ContainsFunc(d.Changes, counts)
	var words []string
	for _, c := range d.Changes {
		if !some || counts(c) {
			words = append(words, of(c))
		}
	}
	if d.More {
		words = append(words, "and more")
	}
	if len(words) == 0 {
		return d.Why
	}
	return strings.Join(words, "; ")
}

// clone returns a copy of d that shares nothing with it.
func (d *Diff) clone() *Diff {
	c := copied(d)
	if c != nil {
		c.Changes = slices.Clone(c.Changes)
	}
	return c
}

// ComparedWith is a comparison with the payload of m, which covers nothing.
func ComparedWith(m *Mutation) *Compared { return &Compared{Payload: m.PayloadDigest, Rule: m.rule()} }

// with reports whether c is a comparison with the payload of m.
func (c *Compared) with(m *Mutation) bool {
	return c != nil && c.Payload == m.PayloadDigest && c.Rule == m.rule()
}

// undecidedBy reports whether the claim would be refused for its payload, without a comparison.
func (m *Mutation) undecidedBy(q *Claim) bool {
	if !m.Forgotten.IsZero() || q.Compared.with(m) {
		return false
	}
	if m.State == Failed {
		return m.carriesOther(q.Record.PayloadDigest)
	}
	return (m.State == Applied || m.Watching) && !m.Covers(q.Record.PayloadDigest, q.Record.SignificantDigest)
}

// diff is what is kept of the difference; nil if nobody compared.
func (c *claiming) diff() *Diff {
	if !c.q.Compared.with(c.m) {
		return nil
	}
	d := c.q.Compared.Diff.clone()
	d.At, d.Payload, d.Run = c.now.Wall, c.q.Record.PayloadDigest, c.q.Run
	return d
}
