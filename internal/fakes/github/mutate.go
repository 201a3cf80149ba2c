package github

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"keep-proxy/internal/fakes/server"
)

func invalid(resource, field, code string) *server.Answer {
	return problem(http.StatusUnprocessableEntity, "Validation Failed", map[string]string{"resource": resource, "field": field, "code": code})
}

// create makes an issue or a pull request.
func (g *GitHub) create(ctx context.Context, c *server.Call, p place) (*server.Answer, error) {
	var in input
	if err := json.Unmarshal(c.Body, &in); err != nil {
		return problem(http.StatusBadRequest, "Problems parsing JSON"), nil
	}
	switch {
	case strings.TrimSpace(in.Title) == "":
		return invalid("Issue", "title", "missing_field"), nil
	case p.kind == "pulls" && (in.Head == "" || in.Base == ""):
		return invalid("PullRequest", "head", "missing_field"), nil
	}
	if err := c.Pause(ctx); err != nil {
		return nil, err
	}
	if c.NoEffect {
		return c.Own, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.draft(in, p, c.Now().UTC())
	if o.pull() && g.openPull(o) {
		return invalid("PullRequest", "head", "custom"), nil
	}
	if err := c.Commit(p.identity(in), o, nil); err != nil {
		return nil, err
	}
	g.put(o)
	shown := o.shown(base(c.Request), len(g.objects)-1)
	return cmp.Or(c.Own, server.JSON(http.StatusCreated, shown, "Location", shown.URL)), nil
}

func (g *GitHub) draft(in input, p place, now time.Time) object {
	o := object{
		Repo: p.repo, Number: 1, Title: in.Title, Body: in.Body, State: "open", Labels: in.Labels, Assignees: in.Assignees,
		Creator: g.settings.Login, Created: now, Updated: now,
	}
	for _, other := range g.objects {
		if other.Repo == p.repo {
			o.Number++
		}
	}
	if p.kind == "pulls" {
		o.Head, o.Base = in.Head, in.Base
	}
	return o
}

func (g *GitHub) openPull(o object) bool {
	for _, other := range g.objects {
		if other.Repo == o.Repo && other.Head == o.Head && other.Base == o.Base && other.State == "open" {
			return true
		}
	}
	return false
}

// update changes title, body or state of an issue or pull request.
func (g *GitHub) update(ctx context.Context, c *server.Call, p place) (*server.Answer, error) {
	var in input
	if err := json.Unmarshal(c.Body, &in); err != nil {
		return problem(http.StatusBadRequest, "Problems parsing JSON"), nil
	}
	if in.State != "" && in.State != "open" && in.State != "closed" {
		return invalid("Issue", "state", "invalid"), nil
	}
	if err := c.Pause(ctx); err != nil {
		return nil, err
	}
	if c.NoEffect {
		return c.Own, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	i := g.index(p.repo, p.number)
	if i < 0 {
		return problem(http.StatusNotFound, "Not Found"), nil
	}
	o := g.objects[i]
	o.Title, o.State = cmp.Or(in.Title, o.Title), cmp.Or(in.State, o.State)
	o.Body = cmp.Or(in.Body, o.Body)
	o.Updated = c.Now().UTC()
	if err := c.Commit(g.Identity(c.Request), o, nil); err != nil {
		return nil, err
	}
	g.put(o)
	return cmp.Or(c.Own, server.JSON(http.StatusOK, o.shown(base(c.Request), i))), nil
}
