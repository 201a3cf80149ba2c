package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
)

// Tally is what a file held at one instant. The zero Tally is that of an empty
// file.
type Tally struct {
	// Events are all whole events, in the order in which they were written.
	Events []Event
	// Torn is the number of lines whose writing was cut by the end of a process.
	Torn int
}

// Read counts the file at path. It needs no lock: an unfinished last line is
// left out. A file that doesn't exist yet is empty.
func Read(path string) (Tally, error) {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return Tally{}, nil
	}
	if err != nil {
		return Tally{}, fmt.Errorf("oracle: read log: %w", err)
	}
	return Parse(data)
}

// Parse counts the content of a file. Only a line that isn't JSON can be a torn
// one; JSON that isn't an event is an error, for a witness must not skip what
// it doesn't understand.
func Parse(data []byte) (Tally, error) { return Tally{}.and(data, 0) }

// and counts the lines of data too, before which there were so many others.
func (t Tally) and(data []byte, before int64) (Tally, error) {
	for number := before + 1; ; number++ {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			return t, nil
		}
		line := data[:end]
		data = data[end+1:]
		e := Event{Seq: number}
		err := json.Unmarshal(line, &e)
		if err != nil && !json.Valid(line) {
			t.Torn++
			continue
		}
		if err != nil {
			return Tally{}, fmt.Errorf("oracle: line %d: %w", number, err)
		}
		if !e.Kind.known() {
			return Tally{}, fmt.Errorf("oracle: line %d: unknown kind %q", number, e.Kind)
		}
		t.Events = append(t.Events, e)
	}
}

// Effects returns how many times the identity took effect.
func (t Tally) Effects(identity string) int { return t.count(KindEffect, identity) }

// Sends returns how many requests for the identity were received, whether or not they took effect. A body that was cut
// may have lost the place of the identity. Such a request is counted by [Tally.Heads] in any case.
func (t Tally) Sends(identity string) int { return t.count(KindReceived, identity) }

// Answers returns how many requests for the identity were answered.
func (t Tally) Answers(identity string) int { return t.count(KindAnswered, identity) }

// Heads returns how many requests arrived, reads included.
func (t Tally) Heads() int { return len(t.Of(KindHead)) }

func (t Tally) count(kind Kind, identity string) int {
	n := 0
	for i := range t.Events {
		if t.Events[i].Kind == kind && t.Events[i].Identity == identity {
			n++
		}
	}
	return n
}

// Of returns the events of one kind.
func (t Tally) Of(kind Kind) []Event {
	return t.Select(func(e Event) bool { return e.Kind == kind })
}

// Select returns the events for which keep is true.
func (t Tally) Select(keep func(Event) bool) []Event {
	var out []Event
	for _, e := range t.Events {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}

// Identities returns every identity that was received or took effect, sorted.
func (t Tally) Identities() []string {
	var out []string
	for i := range t.Events {
		if id := t.Events[i].Identity; id != "" {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Twice returns the identities that took effect more than once, sorted: what a
// run through keep-proxy must leave empty.
func (t Tally) Twice() []string {
	effects := map[string]int{}
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind == KindEffect && e.Identity != "" {
			effects[e.Identity]++
		}
	}
	maps.DeleteFunc(effects, func(_ string, n int) bool { return n < 2 })
	return slices.Sorted(maps.Keys(effects))
}
