package integration

import (
	"context"
	"net/http"
	"strings"
	"time"

	"keep-proxy/internal/fakes/script"
)

// step is one mutation of a journey.
type step struct {
	identity string
	send     func(*scriptRun) reply
}

// note is longer than what a record holds itself, and than one chunk of a stored
// body.
var note = strings.Repeat("a long note ", 40_000)

// journey is a script's work that leads past every crash point: a long body, an
// answer that trickles, three lost acknowledgements: of an API that dedupes, of
// one that can be asked, and of one that can't; and a request that was lost on its
// way and is sent again by itself.
func (w *world) journey() []step {
	post := func(target, body string) func(*scriptRun) reply {
		return func(s *scriptRun) reply { return s.try(context.Background(), http.MethodPost, target, body) }
	}
	return []step{
		{"transfer:long", post(w.probed.URL()+"/transfers", orderOf(map[string]any{"reference": "long", "note": note}))},
		{"transfer:slow", post(w.probed.URL()+"/transfers", order("slow"))},
		{"transfer:resent", post(w.keyed.URL()+"/transfers", order("resent"))},
		{"transfer:found", post(w.probed.URL()+"/transfers", order("found"))},
		{"transfer:again", post(w.probed.URL()+"/transfers", order("again"))},
		{"mail:drafted", post(w.mail.URL()+"/send", message("drafted"))},
		{"hook:bounded/asked", post(w.hooks.URL()+"/hook/bounded/asked", "hello")},
	}
}

// lay arms what the upstreams do to a journey.
func (w *world) lay() {
	w.t.Helper()
	lose := []script.Step{{Do: script.Commit}, {Do: script.Close}}
	w.probed.armFault(script.Fault{Match: script.Match{Identity: "transfer:slow"}, Times: script.Always, Steps: []script.Step{
		// Each wait alone is far longer than what makes the proxy record a success early.
		{Do: script.Commit}, {Do: script.Slow, Bytes: 64, For: script.Duration(150 * time.Millisecond)},
	}})
	w.keyed.armFault(script.Fault{Match: script.Match{Identity: "transfer:resent"}, Steps: lose})
	w.probed.armFault(script.Fault{Match: script.Match{Identity: "transfer:found"}, Steps: lose})
	w.probed.armFault(script.Fault{Match: script.Match{Identity: "transfer:again"}, Steps: []script.Step{{Do: script.Close}}})
	w.mail.armFault(script.Fault{Match: script.Match{Identity: "mail:drafted"}, Steps: lose})
	w.hooks.armFault(script.Fault{Match: script.Match{Identity: "hook:bounded/asked"}, Steps: lose})
}

// travel makes the journey in one run and reports whether it came to its end. It
// stops at the first step that isn't answered with a success, as a script does.
func (w *world) travel() bool {
	run, err := w.tryOpen("a", takeover)
	if err != nil {
		return false
	}
	for _, s := range w.journey() {
		if a := s.send(run); a.err != nil || a.status/100 != 2 {
			return false
		}
	}
	return true
}
