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
func targetOf(m *ledger.Mutation) string {
	if m.Target != "" {
		return m.Target
	}
	return m.Connector + " " + m.Operation
}

// attempted says what was attempted: in the rule's words, then as it went out.
func attempted(m *ledger.Mutation) string {
	text := fmt.Sprintf("%s: %s %s", targetOf(m), m.Request.Method, m.Request.URL)
	if m.Account != "" {
		text += " as " + m.Account
	}
	sent, gaps := 0, 0
	for i := range m.Dispatches {
		switch d := &m.Dispatches[i]; {
		case d.Gap != 0:
			gaps++
		case d.Verdict != ledger.VerdictNotSent, d.BytesWritten > 0:
			sent++
		}
	}
	if gaps > 0 {
		return text + ", sent " + times(sent) + " as far as the ledger knows."
	}
	return text + ", sent " + times(sent) + "."
}

// times counts in words where that reads better.
func times(n int) string {
	switch n {
	case 0:
		return "not yet"
	case 1:
		return "once"
	case 2:
		return "twice"
	default:
		return fmt.Sprintf("%d times", n)
	}
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
	kind := "Sending"
	if d.Gap > 0 {
		return "Whether it was sent in a time that the ledger knows nothing of isn't known: " + gapWords(d) + "."
	}
	if d.Resend {
		kind = "Resending"
	}
	text := fmt.Sprintf("%s %d at %s: %s, %s", kind, n, instant(d.Started.Wall), wrote(d), cameBack(d))
	if d.Error != "" {
		text += fmt.Sprintf(" (%s)", cmp.Or(d.ErrorClass, "error")+": "+d.Error)
	}
	if !d.Ended.Wall.IsZero() {
		text += fmt.Sprintf(", ended after %s", d.Ended.Wall.Sub(d.Started.Wall).Round(time.Millisecond))
	}
	return text + ". " + proves(d)
}

// gapWords say why that isn't known.
func gapWords(d *ledger.Dispatch) string {
	if d.Started.Wall.IsZero() {
		return "a loss of the ledger was accepted"
	}
	return "it is a copy of " + instant(d.Started.Wall) + ", or ends there"
}

// instant prints a time as people compare it.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000Z") }

// wrote says what went out. A lost sender may have written more than it recorded, and one
// that is under way has recorded nothing yet.
func wrote(d *ledger.Dispatch) string {
	switch {
	case d.Lost, d.Ended.Wall.IsZero() && d.Verdict == "":
		return "an unknown number of bytes written"
	case d.BytesWritten == 1:
		return "1 byte written"
	default:
		return fmt.Sprintf("%d bytes written", d.BytesWritten)
	}
}

// cameBack says what was read.
func cameBack(d *ledger.Dispatch) string {
	switch {
	case d.Lost:
		return "keep-proxy stopped before it recorded an end"
	case d.Ended.Wall.IsZero() && d.Verdict == "":
		return "under way"
	case !d.Head:
		return "no answer"
	case !d.BodyComplete:
		return fmt.Sprintf("status %d with a body that was cut", d.Status)
	default:
		return fmt.Sprintf("status %d with its whole body", d.Status)
	}
}

// proves says what the sending's verdict means for the question at hand.
func proves(d *ledger.Dispatch) string {
	reason := ""
	if d.Reason != "" {
		reason = " (" + d.Reason + ")"
	}
	switch d.Verdict {
	case ledger.VerdictApplied:
		return "It took effect" + reason + "."
	case ledger.VerdictAccepted:
		return "It was accepted, and is followed to its end" + reason + "."
	case ledger.VerdictCommitted:
		return "It took effect, but its answer was lost" + reason + "."
	case ledger.VerdictFailed:
		return "It took no effect" + reason + "."
	case ledger.VerdictNotSent:
		if d.BytesWritten > 0 {
			return "It took no effect" + reason + "."
		}
		return "Nothing was sent" + reason + "."
	case ledger.VerdictUncertain:
		return "It may have taken effect or not" + reason + "."
	}
	return "It isn't judged: it may have taken effect or not" + reason + "."
}

// probed tells what was asked of the API since the last sending.
func probed(m *ledger.Mutation) string {
	var seen []string
	for _, o := range m.Observations {
		if o.Voided {
			continue
		}
		text := fmt.Sprintf("%s %s: %s", instant(o.At.Wall), o.Strategy, saw(o.Seen))
		if o.Reason != "" {
			text += " (" + o.Reason + ")"
		}
		seen = append(seen, text+severalObjects(m, &o))
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

// severalObjects names what is there more than once, and which of them the script goes on with: who
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

// disagreed tells what was seen when the stored result was last held against the world, and
// the world did not agree.
func disagreed(v *ledger.Verification) string {
	text := instant(v.At) + " before a replay: "
	if v.Said == ledger.SaidDisagrees {
		text += "it is not there as it was"
	} else {
		text += saw(ledger.SeenRetry)
	}
	if v.Reason != "" {
		text += " (" + v.Reason + ")"
	}
	return text
}

// saw is an observation in words.
func saw(s ledger.Seen) string {
	switch s {
	case ledger.SeenApplied:
		return "it is there"
	case ledger.SeenAbsent:
		return "it isn't there"
	case ledger.SeenFailed:
		return "it failed for good"
	case ledger.SeenDuplicate:
		return "it is there more than once"
	case ledger.SeenRetry:
		return "no answer to go by"
	}
	return "no answer to go by"
}
