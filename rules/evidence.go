package rules

import (
	"fmt"
	"strings"
	"time"
)

// Evidence says where a fact about an API is known from.
type Evidence struct {
	// Claim is the fact, in the connector's own words.
	Claim string
	// URL and Quote show it, Date is when they were read.
	URL, Quote string
	Date       time.Time
	Status     EvidenceStatus
}

// EvidenceStatus is how well a fact is known.
type EvidenceStatus string

// How well a fact is known. Anything else is unverified.
const (
	// EvidenceVerified was read in the vendor's own documents or code.
	EvidenceVerified EvidenceStatus = "verified"
	// EvidenceReported was read elsewhere.
	EvidenceReported EvidenceStatus = "reported"
	// EvidenceUnverified was read nowhere.
	EvidenceUnverified EvidenceStatus = "unverified"
)

// maxQuote bounds a quote, in words.
const maxQuote = 20

// evidence reads where the facts of a rule are known from.
func (d *decoder) evidence(v value) (out []Evidence) {
	for _, item := range d.OneOrMore(v) {
		m, ok := d.Map(item, levelEvidence)
		if !ok {
			continue
		}
		e := Evidence{Status: word(d, d.need(m, "status"), EvidenceUnverified, EvidenceVerified, EvidenceReported, EvidenceUnverified)}
		e.Claim, _ = d.text(d.need(m, "claim"))
		if e.Status == EvidenceUnverified {
			out = append(out, e)
			continue
		}
		e.URL, _ = d.text(d.need(m, "url"))
		e.Quote, _ = d.text(d.need(m, "quote"))
		if n := len(strings.Fields(e.Quote)); n > maxQuote {
			d.Fail("value", m.At("quote"), fmt.Sprintf("has %d words", n), fmt.Sprintf("quote at most %d", maxQuote))
		}
		var err error
		if text, given := d.text(d.need(m, "date")); given {
			if e.Date, err = time.Parse(time.DateOnly, text); err != nil {
				d.Fail("value", m.At("date"), quoted(text)+" is no date", "write it like 2026-01-31")
			}
		}
		out = append(out, e)
	}
	return out
}
