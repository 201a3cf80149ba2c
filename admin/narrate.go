package admin

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"keep-proxy/ledger"
)

// targetOf is the operation in the rule's words, or its name where the rule has
// none.
func targetOf(m *ledger.Mutation) string { return cmp.Or(m.Target, m.Connector+" "+m.Operation) }

// because is a reason in brackets; nothing for none.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// attempted says what was attempted: in the rule's words, then as it went out.
func attempted(m *ledger.Mutation) string {
	text := fmt.Sprintf("%s: %s %s", targetOf(m), m.Request.Method, m.Request.URL)
	if m.Account != "" {
		text += " as " + m.Account
	}
	sent, known := 0, ""
	for i := range m.Dispatches {
		switch d := &m.Dispatches[i]; {
		case d.Gap != 0:
			known = " as far as the ledger knows"
		case d.Verdict != ledger.VerdictNotSent, d.BytesWritten > 0:
			sent++
		}
	}
	times := []string{"not yet", "once", "twice", fmt.Sprintf("%d times", sent)}
	return text + ", sent " + times[min(sent, 3)] + known + "."
}

// whyUnknown tells each sending from its evidence, oldest first.
func whyUnknown(m *ledger.Mutation) string {
	if len(m.Dispatches) == 0 {
		return "No sending is recorded."
	}
	sentences := make([]string, 0, len(m.Dispatches)+1)
	for i := range m.Dispatches {
		sentences = append(sentences, sending(i+1, &m.Dispatches[i]))
	}
	if m.Committed && m.ResultState != ledger.ResultKnown {
		sentences = append(sentences, "Success is known; what is missing is the answer.")
	}
	return strings.Join(sentences, " ")
}

// sending tells one dispatch: when, what went out, what came back, and what
// that proves.
func sending(n int, d *ledger.Dispatch) string {
	if d.Gap > 0 {
		why := "it is a copy of " + instant(d.Started.Wall) + ", or ends there"
		if d.Started.Wall.IsZero() {
			why = "a loss of the ledger was accepted"
		}
		return "Whether it was sent in a time that the ledger knows nothing of isn't known: " + why + "."
	}
	kind := "Sending"
	if d.Resend {
		kind = "Resending"
	}
	text := fmt.Sprintf("%s %d at %s: %s, %s", kind, n, instant(d.Started.Wall), wrote(d), cameBack(d))
	if d.Error != "" {
		text += because(cmp.Or(d.ErrorClass, "error") + ": " + d.Error)
	}
	if !d.Ended.Wall.IsZero() {
		text += fmt.Sprintf(", ended after %s", d.Ended.Wall.Sub(d.Started.Wall).Round(time.Millisecond))
	}
	return text + ". " + proves(d)
}

// instant prints a time as people compare it.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000Z") }

// underWay reports whether nothing of a sending is recorded yet but its start.
func underWay(d *ledger.Dispatch) bool { return d.Ended.Wall.IsZero() && d.Verdict == "" }

// wrote says what went out. A lost sender may have written more than it recorded, and one
// that is under way has recorded nothing yet.
func wrote(d *ledger.Dispatch) string {
	switch {
	case d.Lost, underWay(d):
		return "an unknown number of bytes written"
	case d.BytesWritten == 1:
		return "1 byte written"
	}
	return fmt.Sprintf("%d bytes written", d.BytesWritten)
}

// cameBack says what was read.
func cameBack(d *ledger.Dispatch) string {
	switch {
	case d.Lost:
		return "keep-proxy stopped before it recorded an end"
	case underWay(d):
		return "under way"
	case !d.Head:
		return "no answer"
	case !d.BodyComplete:
		return fmt.Sprintf("status %d with a body that was cut", d.Status)
	}
	return fmt.Sprintf("status %d with its whole body", d.Status)
}

// noEffect is what a verdict of failure means.
const noEffect = "It took no effect"

// meanings say what a verdict means for the question at hand.
var meanings = map[ledger.Verdict]string{
	"":                      "It isn't judged: it may have taken effect or not",
	ledger.VerdictApplied:   "It took effect",
	ledger.VerdictAccepted:  "It was accepted, and is followed to its end",
	ledger.VerdictCommitted: "It took effect, but its answer was lost",
	ledger.VerdictFailed:    noEffect,
	ledger.VerdictNotSent:   "Nothing was sent",
	ledger.VerdictUncertain: "It may have taken effect or not",
}

// proves says what the sending's verdict means for the question at hand.
func proves(d *ledger.Dispatch) string {
	text := cmp.Or(meanings[d.Verdict], meanings[""])
	if d.Verdict == ledger.VerdictNotSent && d.BytesWritten > 0 {
		text = noEffect
	}
	return text + because(d.Reason) + "."
}

// probed tells what was asked of the API since the last sending.
func probed(m *ledger.Mutation) string {
	var seen []string
	for _, o := range m.Observations {
		if o.Voided {
			continue
		}
		text := fmt.Sprintf("%s %s: %s", instant(o.At.Wall), o.Strategy, cmp.Or(sights[o.Seen], sights[ledger.SeenRetry]))
		seen = append(seen, text+because(o.Reason)+severalObjects(m, &o))
	}
	if m.Verification != nil {
		seen = append(seen, disagreed(m.Verification))
	}
	switch {
	case len(seen) > 0:
		return strings.Join(seen, "; ") + "."
	case m.Policy.Reconciler:
		return "Nothing was seen since the last sending."
	default:
		return "Nothing was asked: the rule knows no way to ask this API."
	}
}

// shownObjects is how many ids of objects one look-up is told with.
const shownObjects = 10

// severalObjects names what is there more than once, and which of them the script goes on with. Who
// has to undo the others looks for these ids in the other system.
func severalObjects(m *ledger.Mutation, o *ledger.Observation) string {
	if o.Seen != ledger.SeenDuplicate || len(o.Objects) == 0 {
		return ""
	}
	text := ": " + strings.Join(o.Objects[:min(len(o.Objects), shownObjects)], ", ")
	if more := len(o.Objects) - shownObjects; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if m.State == ledger.Applied && o.Strong {
		text += ", of which the first is kept"
	}
	return text
}

// disagreed tells what was seen when the world last did not agree with the stored result.
func disagreed(v *ledger.Verification) string {
	seen := sights[ledger.SeenRetry]
	if v.Said == ledger.SaidDisagrees {
		seen = "it is not there as it was"
	}
	return instant(v.At) + " before a replay: " + seen + because(v.Reason)
}

// sights are observations in words.
var sights = map[ledger.Seen]string{
	ledger.SeenApplied:   "it is there",
	ledger.SeenAbsent:    "it isn't there",
	ledger.SeenFailed:    "it failed for good",
	ledger.SeenDuplicate: "it is there more than once",
	ledger.SeenRetry:     "no answer to go by",
}
