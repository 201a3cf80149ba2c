package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/internal/fakes/oracle"
)

// identityOf is what an upstream's log calls a record's effect, and which upstream.
func (w *world) identityOf(m wire.Mutation) (*upstream, string) {
	w.t.Helper()
	name := func(member string) string {
		var value string
		if err := json.Unmarshal(m.Identity[member], &value); err != nil {
			w.t.Fatalf("%s has the identity %v", m.ID, m.Identity)
		}
		return value
	}
	switch m.Connector {
	case "keyed-bank":
		return w.keyed, "transfer:" + name("reference")
	case "probed-bank":
		return w.probed, "transfer:" + name("reference")
	case "watched-bank", "reversing-bank":
		if m.Undo != nil {
			return w.started[m.Connector], "reversal:" + m.Undo.Object
		}
		return w.started[m.Connector], "transfer:" + name("reference")
	case "mail":
		return w.mail, "mail:" + name("subject")
	case "hooks":
		hook, _, _ := strings.Cut(m.Operation, ".")
		return w.hooks, "hook:" + hook + "/" + name("name")
	}
	w.t.Fatalf("a mutation of %s", m.Connector)
	return nil, ""
}

// all lists every record; an error says that the program is gone.
func (w *world) all(ctx context.Context) ([]wire.Mutation, error) {
	var all []wire.Mutation
	for f := (client.Filter{}); ; {
		page, err := w.api.Mutations(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all, nil
		}
		f.Cursor = page.Next
	}
}

// settle waits until nothing is unknown any more, and answers as a person what
// can't be asked. An error says that the program is gone.
func (w *world) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// Who asks too often takes the time that the program needs.
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 80*time.Millisecond) {
		records, err := w.all(ctx)
		if err != nil {
			return err
		}
		open := 0
		for _, m := range records {
			switch m.State {
			case "in_flight", "needs_reconcile":
				open++
			case "failed":
				if !m.NextTryAt.IsZero() {
					open++ // Queued to be sent again.
				}
			case "applied":
				if m.Result != nil || m.Escalation == nil {
					continue
				}
				// What was lost after its success was known has no result, which a person gives.
				fallthrough
			case "indeterminate":
				open++
				if err := w.answer(ctx, m); err != nil {
					return err
				}
			}
		}
		if open == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d mutations stay unknown: %w", open, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// answer decides as a careful person does: what is in the upstream's log happened;
// what is not is denied only once that needs no force, and the log is read after
// that, or once it is sure that nothing comes any more.
func (w *world) answer(ctx context.Context, m wire.Mutation) error {
	seen, err := w.api.Mutation(ctx, m.ID)
	if err != nil {
		return err
	}
	r := wire.Resolve{Actor: "ann", Reason: "read the log", Version: seen.Version}
	deniable := false
	for _, a := range seen.Actions {
		deniable = deniable || a.Action == wire.ActionDidNotHappen && !a.NeedsForce
	}
	deniable = deniable || w.sure
	from, identity := w.identityOf(m)
	if err := from.Rest(ctx); err != nil {
		return err
	}
	tally, err := from.Tally()
	if err != nil {
		return err
	}
	switch {
	case tally.Effects(identity) > 0:
		r.Action, r.Result = wire.ActionHappened, &wire.Result{Status: http.StatusOK, Body: wire.Text("ok\n")}
	case deniable:
		r.Action, r.Force = wire.ActionDidNotHappen, w.sure
	default:
		return nil
	}
	if _, err = w.api.Resolve(ctx, m.ID, r); client.IsProblem(err, "version") || client.IsProblem(err, "not-allowed") {
		return nil
	}
	return err
}

// check holds every record against the upstreams' logs, at a moment at which nobody
// is sending: applied is one effect, failed none, and nothing ever took effect twice.
func (w *world) check() error {
	records, err := w.all(context.Background())
	if err != nil {
		return err
	}
	want := map[string]int{"applied": 1, "failed": 0}
	for _, m := range records {
		from, identity := w.identityOf(m)
		effects, known := want[m.State]
		if n, ok := w.intended[identity]; ok && m.State == "applied" {
			effects = n
		}
		if got := from.tally().Effects(identity); known && got != effects {
			w.t.Errorf("%s is %s, and took effect %d times: %s (%s)", identity, m.State, got, m.Reason, m.ID)
		}
	}
	w.checkTwice()
	return nil
}

// quiet waits until no upstream is at work for a process that has died, and has read
// all that came from it. What commits late has tests of its own; these are not to depend on
// how fast the machine is.
func (w *world) quiet() {
	w.t.Helper()
	w.poll("the upstreams have come to rest", func() bool {
		for _, u := range w.started {
			if w.dead() && u.Connected() > 0 {
				return false
			}
			if t := u.tally(); len(t.Of(oracle.KindEnded)) < t.Heads() {
				return false
			}
		}
		return true
	})
}

// dead reports whether the program doesn't run as a process.
func (w *world) dead() bool {
	if w.child == nil {
		return true
	}
	select {
	case <-w.child.gone:
		return true
	default:
		return false
	}
}

// checkTwice holds that nothing took effect twice, whatever the ledger says.
func (w *world) checkTwice() {
	w.t.Helper()
	for _, u := range w.started {
		tally := u.tally()
		for _, identity := range tally.Twice() {
			if tally.Effects(identity) != w.intended[identity] {
				w.t.Errorf("%s: %s took effect %d times", u.API.Name(), identity, tally.Effects(identity))
			}
		}
	}
}
