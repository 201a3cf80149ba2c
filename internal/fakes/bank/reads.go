package bank

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"keep-proxy/internal/fakes/server"
)

// Bounds of a page of the listing.
const (
	defaultPage = 20
	maxPage     = 100
)

func (b *Bank) find(id string) *server.Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.shown(id); t != nil {
		return server.JSON(http.StatusOK, *t)
	}
	return problem(http.StatusNotFound, "no_transfer", "there is no transfer "+id)
}

// list gives a page of what the listing shows already. The cursor is the id of
// the last transfer of the page before.
func (b *Bank) list(c *server.Call) *server.Answer {
	limit := defaultPage
	if text := c.Query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return problem(http.StatusBadRequest, "invalid_limit", "limit must be 1 to 100")
		}
		limit = n
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	all, cursor := b.booked, c.Query.Get("cursor")
	if cursor != "" {
		i := slices.IndexFunc(all, func(t Transfer) bool { return t.ID == cursor })
		if i < 0 {
			return problem(http.StatusBadRequest, "invalid_cursor", "cursor is not from a page of this listing")
		}
		all = all[i+1:]
	}
	page := Page{Items: []Transfer{}}
	for _, t := range all {
		if !b.shows(t, c) {
			continue
		}
		if len(page.Items) == limit {
			page.HasMore, page.NextCursor = true, page.Items[limit-1].ID
			break
		}
		page.Items = append(page.Items, t)
	}
	return server.JSON(http.StatusOK, page)
}

// Page is a page of GET /transfers.
type Page struct {
	Items      []Transfer `json:"items"`
	HasMore    bool       `json:"has_more"`
	NextCursor string     `json:"next_cursor"`
}

func (b *Bank) shows(t Transfer, c *server.Call) bool {
	if t.Status == statusCancelled {
		return false
	}
	if want := c.Query.Get("reference"); want != "" && t.Reference != want {
		return false
	}
	if want := c.Query.Get("from"); want != "" && t.From != want {
		return false
	}
	created, err := time.Parse(time.RFC3339Nano, t.CreatedAt)
	return err == nil && c.Now().Sub(created) >= b.settings.ListLag.Std()
}

func (b *Bank) balance(c *server.Call) *server.Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.balances()
	want := c.Query.Get("account")
	if want == "" {
		return server.JSON(http.StatusOK, map[string]any{"items": lines})
	}
	for _, line := range lines {
		if line.Account == want {
			return server.JSON(http.StatusOK, line)
		}
	}
	return problem(http.StatusNotFound, "no_account", "there is no account "+want)
}
