package client

import (
	"net/url"
	"strconv"
	"time"
)

// Page selects a part of a listing.
type Page struct {
	// Cursor is the Next of the page before.
	Cursor string
	// Limit is the longest page: 1 to 1000; 0 takes 100.
	Limit int
}

// Filter selects records. Zero fields don't.
type Filter struct {
	Page
	Workflow string
	Item     string
	// Since leaves out what is older.
	Since time.Time
}

// RunFilter selects runs.
type RunFilter struct {
	Filter
	// Running selects runs that have not ended.
	Running bool
}

// ItemFilter selects items.
type ItemFilter struct {
	Filter
	States []string
}

// MutationFilter selects mutations.
type MutationFilter struct {
	Filter
	States    []string
	Connector string
	Operation string
	Run       string
	// Unresolved selects those whose outcome is unknown.
	Unresolved bool
	// Escalated selects those with an open question to a person.
	Escalated bool
}

// ObligationFilter selects obligations.
type ObligationFilter struct {
	Filter
	Connector string
	// All selects those that are met or waived, too.
	All bool
}

func (f ObligationFilter) values() url.Values {
	q := f.Filter.values()
	set(q, "connector", f.Connector)
	flag(q, "all", f.All)
	return q
}

func (f Filter) values() url.Values {
	q := url.Values{}
	set(q, "cursor", f.Cursor)
	set(q, "workflow", f.Workflow)
	set(q, "item", f.Item)
	if f.Limit != 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	if !f.Since.IsZero() {
		q.Set("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	return q
}

func (f RunFilter) values() url.Values {
	q := f.Filter.values()
	flag(q, "running", f.Running)
	return q
}

func (f ItemFilter) values() url.Values {
	q := f.Filter.values()
	for _, state := range f.States {
		q.Add("state", state)
	}
	return q
}

func (f MutationFilter) values() url.Values {
	q := f.Filter.values()
	for _, state := range f.States {
		q.Add("state", state)
	}
	set(q, "connector", f.Connector)
	set(q, "operation", f.Operation)
	set(q, "run", f.Run)
	flag(q, "unresolved", f.Unresolved)
	flag(q, "escalated", f.Escalated)
	return q
}

// set adds a parameter that isn't empty.
func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

// flag adds a parameter that is true.
func flag(q url.Values, name string, value bool) {
	if value {
		q.Set(name, "true")
	}
}
