package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/names"
	"keep-proxy/ledger"
)

// Bounds of what a run may be opened with.
const (
	maxLabels = 32
	// maxTolerate is how many refusals a run may tolerate.
	maxTolerate = 100
	// maxReach is how many targets past the proxy a run may have.
	maxReach = 100
	maxTTL   = 365 * 24 * time.Hour
)

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

// sentence wants a bounded text, or none; lines may be broken.
func (f *faults) sentence(where, text string) {
	if what, how := ledger.TextFault(text); what != "" {
		f.add(where, what, how)
	}
}

// decision adds what the ledger says of a decision that is wrong in itself.
func (f *faults) decision(err error) {
	if invalid, ok := errors.AsType[*ledger.InvalidError](err); ok {
		*f = append(*f, each(invalid.Faults, faultOf)...)
	}
}

// faultOf gives a fault of the ledger its place in the request.
func faultOf(f ledger.Fault) wire.Fault {
	return wire.Fault{Where: "/" + f.Field, What: f.What, How: f.How}
}

// word wants one of the words that the member takes, which is called as in the OpenAPI document.
func (f *faults) word(member, word string) {
	if _, name, _ := strings.Cut(member, "."); !slices.Contains(words[member], word) {
		f.add("/"+name, fmt.Sprintf("unknown value %q", word), "give one of "+strings.Join(words[member], ", "))
	}
}

// optionalWord is word for one that may be absent.
func (f *faults) optionalWord(member, word string) {
	if word != "" {
		f.word(member, word)
	}
}

// ttl wants a time limit from a second to a year, or none.
func (f *faults) ttl(where string, d wire.Duration) {
	if t := time.Duration(d); t != 0 && (t < time.Second || t > maxTTL) {
		f.add(where, fmt.Sprintf("%s is out of bounds", d), "give 1s to 8760h, or leave it out")
	}
}

// actorOf is the name under which a decision is recorded: the one given. With a token that isn't the
// operator's own, it also says whose token it was.
func actorOf(ctx context.Context, name string) string {
	who := callerOf(ctx)
	if who.name == operatorName || who.name == name {
		return name
	}
	return name + " via " + who.name
}
