package dispatch

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestEventsAreParted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stream string
		events []string
		data   []string
	}{
		"LF":                   {"id: 1\ndata: a\n\ndata: b\n\n", []string{"id: 1\ndata: a\n\n", "data: b\n\n"}, []string{"a", "b"}},
		"CRLF":                 {"data: a\r\n\r\ndata:b\r\n\r\n", []string{"data: a\r\n\r", "\ndata:b\r\n\r"}, []string{"a", "b"}},
		"CR":                   {"data: a\r\rdata: b\r\r", []string{"data: a\r\r", "data: b\r\r"}, []string{"a", "b"}},
		"lines of data":        {"data: a\ndata:  b\ndata\n\n", []string{"data: a\ndata:  b\ndata\n\n"}, []string{"a\n b\n"}},
		"a comment":            {": hi\n\n", []string{": hi\n\n"}, []string{""}},
		"one that isn't ended": {"data: a\n\ndata: b\n", []string{"data: a\n\n"}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newEventReader(strings.NewReader(c.stream), 100)
			var events, data []string
			for {
				event, d, err := r.next()
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					break
				}
				events, data = append(events, string(event)), append(data, string(d))
			}
			if !slices.Equal(events, c.events) || !slices.Equal(data, c.data) {
				t.Errorf("got %q with %q", events, data)
			}
		})
	}
}

func TestAnEventHasABound(t *testing.T) {
	t.Parallel()
	r := newEventReader(strings.NewReader("data: "+strings.Repeat("a", 100)+"\n\n"), 100)
	if _, _, err := r.next(); !errors.Is(err, errLongEvent) {
		t.Errorf("got %v", err)
	}
}
