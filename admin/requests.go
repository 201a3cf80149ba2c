package admin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
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

// requestFields choose among requests; all that are given must fit.
var requestFields = []struct {
	parameter
	of func(*wire.Served) string
}{
	{parameter{"method", "only this method"}, func(q *wire.Served) string { return q.Method }},
	{parameter{"host", "only this host, as the log has it"}, func(q *wire.Served) string { return q.Host }},
	{parameter{"status", "only this status, or a class such as 4xx"}, func(q *wire.Served) string { return strconv.Itoa(q.Status) }},
	{parameter{"effect", "only one of " + strings.Join(effects, ", ")}, func(q *wire.Served) string { return q.Effect }},
	{parameter{"problem", "only refusals of this name; any for every refusal"}, func(q *wire.Served) string { return q.Problem }},
	{parameter{"workflow", "only this workflow"}, func(q *wire.Served) string { return q.Workflow }},
	{parameter{"item", "only this item"}, func(q *wire.Served) string { return q.Item }},
	{parameter{"run", "only this run"}, func(q *wire.Served) string { return q.Run }},
	{parameter{"connector", "only this connector"}, func(q *wire.Served) string { return q.Connector }},
	{parameter{"operation", "only this operation"}, func(q *wire.Served) string { return q.Operation }},
}

// requestParameters are the names of requestFields.
func requestParameters() (list []parameter) {
	for _, f := range requestFields {
		list = append(list, f.parameter)
	}
	return list
}

// sendRequests answers GET /v1/requests: one JSON object a line, beginning with an
// empty line when nothing is missed any more.
func sendRequests(s *Server, w http.ResponseWriter, r *http.Request) error {
	wants := r.URL.Query()
	// What no request can have is refused: nobody would ever be told anything, which looks like quiet.
	switch status, effect := wants.Get("status"), wants.Get("effect"); {
	case status != "" && !statusFilter.MatchString(status):
		return BadRequest("query:status", fmt.Sprintf("%q is no status", status), "give one such as 404, or a class such as 4xx")
	case effect != "" && !slices.Contains(effects, effect):
		return BadRequest("query:effect", fmt.Sprintf("unknown effect %q", effect), "give one of "+strings.Join(effects, ", "))
	}
	return s.stream(w, r, func(ctx context.Context, w io.Writer) error {
		begun := func() error {
			_, err := io.WriteString(w, "\n")
			return err
		}
		return unlessEnded(ctx, s.config.Requests(ctx, func(q *wire.Served) bool { return fits(q, wants) }, begun,
			func(q wire.Served) error { return writeLine(w, q) }))
	})
}

// fits reports whether a request is one of those that are wanted.
func fits(q *wire.Served, wants url.Values) bool {
	for _, f := range requestFields {
		want, got := wants.Get(f.name), f.of(q)
		switch class, isClass := strings.CutSuffix(want, "xx"); {
		case want == "", want == got, f.name == "problem" && want == "any" && got != "":
		case f.name == "status" && isClass && strings.HasPrefix(got, class):
		default:
			return false
		}
	}
	return true
}
