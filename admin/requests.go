package admin

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"keep-proxy/admin/wire"
)

// requestParameters choose among requests; all that are given must fit.
var requestParameters = []parameter{
	{"method", "only this method"},
	{"host", "only this host, as the log has it"},
	{"status", "only this status, or a class such as 4xx"},
	{"effect", "only read, mutation, ignore, observe or allow"},
	{"problem", "only refusals of this name; any for every refusal"},
	{"workflow", "only this workflow"},
	{"item", "only this item"},
	{"run", "only this run"},
	{"connector", "only this connector"},
	{"operation", "only this operation"},
}

// sendRequests answers GET /v1/requests: one JSON object a line, beginning with an
// empty line when nothing is missed any more.
func sendRequests(s *Server, w http.ResponseWriter, r *http.Request) error {
	if s.config.Requests == nil {
		return refuse("not-ready", "No proxy runs here whose requests could be followed.")
	}
	wants := map[string]string{}
	for _, p := range requestParameters {
		if value := r.URL.Query().Get(p.name); value != "" {
			wants[p.name] = value
		}
	}
	w.Header().Set("Content-Type", "application/jsonl")
	ctx, cancel := s.untilShutdown(r.Context())
	defer cancel()
	return s.stream(w, r, func(w io.Writer) error {
		begun := func() error {
			_, err := io.WriteString(w, "\n")
			return err
		}
		return unlessEnded(ctx, s.config.Requests(ctx, func(q *wire.Served) bool { return fits(q, wants) }, begun,
			func(q wire.Served) error { return writeLine(w, q) }))
	})
}

// fits reports whether a request is one of those that are wanted.
func fits(q *wire.Served, wants map[string]string) bool {
	for name, value := range wants {
		got := ""
		switch name {
		case "method":
			got = q.Method
		case "host":
			got = q.Host
		case "status":
			got = strconv.Itoa(q.Status)
			if class, ok := strings.CutSuffix(value, "xx"); ok {
				value, got = class, got[:1]
			}
		case "effect":
			got = q.Effect
		case "problem":
			got = q.Problem
			if value == "any" && got != "" {
				continue
			}
		case "workflow":
			got = q.Workflow
		case "item":
			got = q.Item
		case "run":
			got = q.Run
		case "connector":
			got = q.Connector
		case "operation":
			got = q.Operation
		}
		if got != value {
			return false
		}
	}
	return true
}
