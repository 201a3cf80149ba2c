package stripe

import (
	"net/http"
	"slices"
	"strconv"

	"keep-proxy/internal/fakes/server"
)

// Bounds of a page.
const (
	defaultPage = 10
	maxPage     = 100
)

// List is a page of refunds.
type List struct {
	Object  string   `json:"object"`
	URL     string   `json:"url"`
	HasMore bool     `json:"has_more"`
	Data    []Refund `json:"data"`
}

func (s *Stripe) list(c *server.Call) *server.Answer {
	limit := defaultPage
	if text := c.Query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return problem(http.StatusBadRequest, badRequest, "parameter_invalid_integer", "limit must be 1 to 100.", "limit")
		}
		limit = n
	}
	all, ok := between(s.visible(c), c.Query.Get("starting_after"), c.Query.Get("ending_before"))
	if !ok {
		return problem(http.StatusBadRequest, badRequest, "resource_missing", "No such refund.", "starting_after")
	}
	page := List{Object: "list", URL: "/v1/refunds", HasMore: len(all) > limit, Data: []Refund{}}
	if page.HasMore && c.Query.Get("ending_before") != "" {
		all = all[len(all)-limit:]
	}
	page.Data = append(page.Data, all[:min(limit, len(all))]...)
	return server.JSON(http.StatusOK, page)
}

// visible returns what the query asks for and the listing shows already, newest
// first.
func (s *Stripe) visible(c *server.Call) []Refund {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Refund
	for _, r := range slices.Backward(s.refunds) {
		if r.account == accountOf(c) && asked(c.Query.Get("charge"), r.Charge) &&
			asked(c.Query.Get("payment_intent"), r.PaymentIntent) && c.Now().Sub(r.at) >= s.settings.ListLag.Std() {
			out = append(out, r)
		}
	}
	return out
}

func asked(want string, have *string) bool { return want == "" || have != nil && *have == want }

// between returns the refunds after one id and before another; ok is false when
// one of them isn't there.
func between(all []Refund, after, before string) (out []Refund, ok bool) {
	at := func(id string) int { return slices.IndexFunc(all, func(r Refund) bool { return r.ID == id }) }
	from, to := 0, len(all)
	if after != "" {
		if from = at(after) + 1; from == 0 {
			return nil, false
		}
	}
	if before != "" {
		if to = at(before); to < from {
			return nil, false
		}
	}
	return all[from:to], true
}

func (s *Stripe) find(c *server.Call, id string) *server.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.refunds {
		if r.ID == id && r.account == accountOf(c) {
			return server.JSON(http.StatusOK, r)
		}
	}
	return problem(http.StatusNotFound, badRequest, "resource_missing", "No such refund: "+id, "id")
}
