package admin

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"keep-proxy/admin/wire"
)

// effects are the effects that requests have.
var effects = []string{"read", "mutation", "ignore", "observe", "allow", "passthrough"}

// statusFilter matches a status, or a class of them.
var statusFilter = regexp.MustCompile(`^([0-9]{1,3}|[1-5]xx)$`)

// orWords is "read, mutation or ignore".
func orWords(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// checkWants refuses what no request can have: nobody would ever be told anything, which looks like quiet.
func checkWants(wants map[string]string) error {
	switch status, effect := wants["status"], wants["effect"]; {
	case status != "" && !statusFilter.MatchString(status):
		return BadRequest("query:status", fmt.Sprintf("%q is no status", status), "give one such as 404, or a class such as 4xx")
	case effect != "" && !slices.Contains(effects, effect):
		return BadRequest("query:effect", fmt.Sprintf("unknown effect %q", effect), "give "+orWords(effects))
	}
	return nil
}

// requestParameters choose among requests; all that are given must fit.
var requestParameters = []parameter{
	{"method", "only this method"},
	{"host", "only this host, as the log has it"},
	{"status", "only this status, or a class such as 4xx"},
	{"effect", "only " + orWords(effects)},
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
	wants := map[string]string{}
	for _, p := range requestParameters {
		if value := r.URL.Query().Get(p.name); value != "" {
			wants[p.name] = value
		}
	}
	if err := checkWants(wants); err != nil {
		return err
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
