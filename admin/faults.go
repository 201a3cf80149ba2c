package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/names"
)

// Bounds of what people and programs may write into the ledger, in bytes.
const (
	maxSentence = 2000
	maxLabels   = 32
)

// maxTTL bounds a run's time limit.
const maxTTL = 365 * 24 * time.Hour

// faults collects what is wrong with a request, so that all of it is reported.
type faults []wire.Fault

// err is nil if nothing was added.
func (f *faults) err() error {
	if len(*f) == 0 {
		return nil
	}
	return badRequest(*f)
}

func (f *faults) add(where, what, how string) {
	*f = append(*f, wire.Fault{Where: where, What: what, How: how})
}

// name wants a text of one line that isn't empty.
func (f *faults) name(where, text string) {
	if text == "" {
		f.add(where, "missing", "give a name")
		return
	}
	f.optionalName(where, text)
}

// optionalName wants a text of one line, or none.
func (f *faults) optionalName(where, text string) {
	if what, how := names.Fault(text); text != "" && what != "" {
		f.add(where, what, how)
	}
}

// sentence wants a text that says something.
func (f *faults) sentence(where, text string) {
	if strings.TrimSpace(text) == "" {
		f.add(where, "missing", "say why, for whoever reads the history")
		return
	}
	f.optionalSentence(where, text)
}

// optionalSentence wants a bounded text; lines may be broken.
func (f *faults) optionalSentence(where, text string) {
	switch {
	case len(text) > maxSentence:
		f.add(where, fmt.Sprintf("longer than %d bytes", maxSentence), "shorten it")
	case !names.Shown(strings.NewReplacer("\n", " ", "\t", " ").Replace(text)):
		f.add(where, "control characters", "leave them out")
	}
}

// oneOf wants one of a few words.
func (f *faults) oneOf(where, word string, words ...string) {
	switch {
	case word == "":
		f.add(where, "missing", "give one of "+strings.Join(words, ", "))
	case !slices.Contains(words, word):
		f.add(where, fmt.Sprintf("unknown value %q", word), "give one of "+strings.Join(words, ", "))
	}
}

// optionalOneOf is oneOf for a word that may be absent.
func (f *faults) optionalOneOf(where, word string, words ...string) {
	if word != "" {
		f.oneOf(where, word, words...)
	}
}

// ttl wants a time limit from a second to a year, or none.
func (f *faults) ttl(where string, d wire.Duration) {
	if t := time.Duration(d); t != 0 && (t < time.Second || t > maxTTL) {
		f.add(where, fmt.Sprintf("%s is out of bounds", d), "give 1s to 8760h, or leave it out")
	}
}

// actorOf is the name under which a decision is recorded: the one given, and,
// with a token that isn't the operator's own, whose token it was.
func actorOf(ctx context.Context, name string) string {
	who := callerOf(ctx)
	if who.name == operatorName || who.name == name {
		return name
	}
	return name + " via " + who.name
}
