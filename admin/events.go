package admin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"keep-proxy/admin/wire"
)

// eventPoll is how often the ledger is asked for new events, and eventBatch how many are read at once.
// After quietPolls without one a comment keeps the connection alive (15 s).
const (
	eventPoll  = time.Second
	eventBatch = 500
	quietPolls = 15
)

// sendEvents answers GET /v1/events with server-sent events, whose ids are the events' sequence
// numbers. It begins after Last-Event-ID (or the parameter after), and goes on until the caller goes
// or the server stops. An event is sent once it is durable.
func sendEvents(s *Server, w http.ResponseWriter, r *http.Request) error {
	after, err := s.eventCursor(r)
	if err != nil {
		return err
	}
	return s.stream(w, r, func(ctx context.Context, w io.Writer) error {
		return unlessEnded(ctx, s.followEvents(ctx, w, after))
	})
}

// unlessEnded drops a stream's error once its caller has gone or the server stops. That is its ordinary end.
func unlessEnded(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// followEvents writes events until it fails, or ctx ends.
func (s *Server) followEvents(ctx context.Context, w io.Writer, after uint64) error {
	for quiet := 0; ; quiet++ {
		events, err := s.config.Ledger.Events(ctx, "", after, eventBatch)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := writeEvent(w, as[wire.Event](e)); err != nil {
				return err
			}
			after, quiet = e.Seq, 0
		}
		if len(events) == eventBatch {
			continue
		}
		if quiet%quietPolls == 0 {
			if _, err := io.WriteString(w, ":\n\n"); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.config.After(eventPoll):
		}
	}
}

// writeEvent writes one event, by what it is about first; its JSON is a single line.
func writeEvent(w io.Writer, e wire.Event) error {
	data, err := marshal(e)
	if err != nil {
		return err
	}
	about := "ledger"
	switch {
	case e.Mutation != "":
		about = "mutation"
	case e.Run != "":
		about = "run"
	}
	_, err = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, about, data)
	return err
}

// eventCursor is the sequence number after which to begin. The field, which a client sets when it
// connects again, wins over the parameter. A ledger that was restored may end before what a client has
// of it. The client would be told nothing until new events have reached that number. It would never be
// told those that have the numbers of the old ones.
func (s *Server) eventCursor(r *http.Request) (uint64, error) {
	where, text := "header:Last-Event-ID", r.Header.Get("Last-Event-ID")
	if text == "" {
		where, text = "query:after", r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	after, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, BadRequest(where, "no event's number", "give the id of the last event that you have")
	}
	if after == 0 {
		return 0, nil
	}
	events, err := s.config.Ledger.Events(r.Context(), "", after-1, 1)
	if err == nil && len(events) == 0 {
		err = BadRequest(where, "the ledger's history ends before that event", "it was restored, or begun anew; read it from the beginning")
	}
	return after, err
}
