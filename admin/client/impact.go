package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"keep-proxy/admin/wire"
)

// ImpactFilter selects what was touched. At least one field is needed, and Connector with
// Version.
type ImpactFilter struct {
	Connector string
	Version   int
	Run       string
	Workflow  string
	// Since and Until are times (RFC 3339), or durations ago.
	Since, Until string
}

// Impact lists every mutation that the filter selects, newest first.
func (c *Client) Impact(ctx context.Context, f ImpactFilter) ([]wire.Touched, error) {
	q := url.Values{}
	set(q, "connector", f.Connector)
	set(q, "run", f.Run)
	set(q, "workflow", f.Workflow)
	set(q, "since", f.Since)
	set(q, "until", f.Until)
	if f.Version != 0 {
		q.Set("version", strconv.Itoa(f.Version))
	}
	var all []wire.Touched
	for {
		page, err := call[wire.List[wire.Touched]](ctx, c, request{method: http.MethodGet, path: "/v1/impact", query: q})
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all, nil
		}
		q.Set("cursor", page.Next)
	}
}
