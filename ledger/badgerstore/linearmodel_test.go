package badgerstore

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"keep-proxy/ledger"
)

// asked is a command.
type asked struct {
	Key string `json:"key"`
	Do  string `json:"do"`
	// Dispatch is the claim's own, or that which is finished.
	Dispatch string `json:"dispatch,omitempty"`
}

// answered is what came back: the decision or the state, and whose result a script gets.
type answered struct {
	Got    string `json:"got"`
	Result string `json:"result,omitempty"`
}

// said is a line that the process prints: a call with what was asked, else its answer.
type said struct {
	ID     int64     `json:"id"`
	Asked  *asked    `json:"asked,omitempty"`
	Answer *answered `json:"answer,omitempty"`
}

// record is what one caller after another would see of a mutation.
type record struct {
	State ledger.State
	// Dispatch is the one in flight, Result the dispatch whose result is given.
	Dispatch, Result string
}

// cut is the answer of a command that a kill cut.
var cut = answered{Got: "cut"}

const refused = "refused"

// after is the record after a command, and the answer that it must give. A decision of a
// person may be refused as well, since it may be about an older version.
func (r record) after(q asked) (record, answered) {
	switch q.Do {
	case "claim":
		switch r.State {
		case "", ledger.Failed:
			return record{ledger.InFlight, q.Dispatch, ""}, answered{Got: "dispatch"}
		case ledger.InFlight:
			return r, answered{Got: "join"}
		case ledger.Applied:
			return r, answered{Got: "replay", Result: r.Result}
		default:
			return r, answered{Got: "blocked"}
		}
	case "recover":
		if r.State == ledger.InFlight {
			return record{State: ledger.Indeterminate}, answered{}
		}
		return r, answered{}
	case "read":
		return r, answered{Got: string(r.State), Result: r.Result}
	}
	return r.moved(q)
}

// moved is after for commands that need a state.
func (r record) moved(q asked) (record, answered) {
	from, to := ledger.InFlight, map[string]ledger.State{
		"applied": ledger.Applied, "failed": ledger.Failed, "uncertain": ledger.Indeterminate,
		"happened": ledger.Applied, "did_not_happen": ledger.Failed,
	}[q.Do]
	if q.Do == "happened" || q.Do == "did_not_happen" {
		from = ledger.Indeterminate
	} else if r.Dispatch != q.Dispatch {
		return r, answered{Got: refused}
	}
	if r.State != from {
		return r, answered{Got: refused}
	}
	next := record{State: to}
	if to == ledger.Applied {
		next.Result = q.Dispatch
	}
	return next, answered{Got: string(to)}
}

// linear is the model that the history of each key is held against.
var linear = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range history {
			if q, ok := o.Input.(asked); ok {
				byKey[q.Key] = append(byKey[q.Key], o)
			}
		}
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() []any { return []any{record{}} },
	Step: func(state, input, output any) []any {
		r, okState := state.(record)
		q, okInput := input.(asked)
		got, okOutput := output.(answered)
		if !okState || !okInput || !okOutput {
			return nil
		}
		next, want := r.after(q)
		switch {
		case got == cut && next != r:
			return []any{r, next}
		case got == cut:
			return []any{r}
		case got == want:
			return []any{next}
		case got.Got == refused && (q.Do == "happened" || q.Do == "did_not_happen"):
			return []any{r}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v -> %+v", input, output)
	},
}
