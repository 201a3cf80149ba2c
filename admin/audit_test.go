package admin_test

import (
	"errors"
	"io"
	"testing"

	"github.com/go-json-experiment/json"

	"keep-proxy/admin/wire"
)

// exported are the lines of an export, taken apart.
type exported struct {
	runs, mutations, whats []string
	end                    *wire.AuditEnd
}

func (w *world) export(run string) (out exported) {
	w.t.Helper()
	end, err := w.client.Audit(w.t.Context(), run, func(line []byte) error {
		var l wire.AuditLine
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		switch {
		case l.Run != nil:
			out.runs = append(out.runs, l.Run.ID)
		case l.Mutation != nil:
			out.mutations = append(out.mutations, l.Mutation.ID)
		case l.Event != nil:
			out.whats = append(out.whats, l.Event.What)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	out.end = end
	return out
}

func TestAuditExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	other := w.open("b")
	run, m := w.unknown("a")
	all := w.export("")
	if len(all.runs)+len(all.mutations) != 0 || all.end.Events != len(all.whats) || all.end.Seq != uint64(len(all.whats)) || all.end.Ledger == "" {
		t.Errorf("of the whole ledger: %+v, %+v", all, all.end)
	}
	one := w.export(run.ID)
	if len(one.runs) != 1 || one.runs[0] != run.ID || len(one.mutations) != 1 || one.mutations[0] != m.ID || one.end.Mutations != 1 {
		t.Errorf("of one run: %+v", one)
	}
	if len(one.whats) >= len(all.whats) || one.whats[0] != "run_opened" || one.end.Events != len(one.whats) || one.end.Seq != all.end.Seq {
		t.Errorf("of one run came %v, of all %v", one.whats, all.whats)
	}
	if idle := w.export(other.ID); len(idle.mutations) != 0 || len(idle.whats) != 1 {
		t.Errorf("of a run that did nothing: %+v", idle)
	}
	_, err := w.client.Audit(t.Context(), "nobody", func([]byte) error { return nil })
	problemIn(t, err, 404, "not-found")
	full := errors.New("no room")
	if _, err := w.client.Audit(t.Context(), "", func([]byte) error { return full }); !errors.Is(err, full) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a reader that fails: %v", err)
	}
}
