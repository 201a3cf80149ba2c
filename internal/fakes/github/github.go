package github

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fakes/server"
)

// GitHub is the fake. Its objects are what its log says.
type GitHub struct {
	mu       sync.Mutex
	settings Settings
	objects  []object // in the order of their making
}

// Settings are what the fake can be told.
type Settings struct {
	// ListLag is how long the listing doesn't show a new object.
	ListLag script.Duration `json:"list_lag"`
	// Login is the creator of everything.
	Login string `json:"login"`
}

// New returns the API.
func New() *GitHub { return &GitHub{settings: Settings{Login: "keep-bot"}} }

// Name returns "github".
func (g *GitHub) Name() string { return "github" }

// Adjust changes the settings that the JSON object names.
func (g *GitHub) Adjust(settings []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.settings
	dec := json.NewDecoder(bytes.NewReader(settings))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&next); err != nil {
		return fmt.Errorf("github: settings: %w", err)
	}
	if next.ListLag < 0 || next.Login == "" {
		return errors.New("github: settings: list_lag must not be negative, login must not be empty")
	}
	g.settings = next
	return nil
}

// place is what a path points at.
type place struct {
	repo   string // owner/repo in lower case
	kind   string // issues or pulls
	number int    // 0 for the collection
}

// locate reads a path of the API.
func locate(path string) (place, bool) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(parts) < 4 || len(parts) > 5 || parts[0] != "repos" || parts[1] == "" || parts[2] == "" {
		return place{}, false
	}
	p := place{repo: strings.ToLower(parts[1] + "/" + parts[2]), kind: parts[3]}
	if p.kind != "issues" && p.kind != "pulls" {
		return place{}, false
	}
	if len(parts) == 5 {
		n, err := strconv.Atoi(parts[4])
		if err != nil || n < 1 {
			return place{}, false
		}
		p.number = n
	}
	return p, true
}

// Identity names what would be made or changed.
func (g *GitHub) Identity(r *server.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return ""
	}
	var in input
	p, ok := locate(r.Path)
	switch {
	case !ok || json.Unmarshal(r.Body, &in) != nil:
		return r.Method + " " + r.Path
	case p.number > 0:
		return fmt.Sprintf("issue-update:%s#%d", p.repo, p.number)
	}
	return p.identity(in)
}

func (p place) identity(in input) string {
	if p.kind == "pulls" {
		return "pull:" + p.repo + ":" + in.Head + ":" + in.Base
	}
	return "issue:" + p.repo + ":" + strings.TrimSpace(in.Title)
}

// Serve answers a request.
func (g *GitHub) Serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	p, ok := locate(c.Path)
	read := c.Method == http.MethodGet || c.Method == http.MethodHead
	switch {
	case !ok:
		return problem(http.StatusNotFound, "Not Found"), nil
	case read && p.kind == "issues" && p.number == 0:
		return g.list(c, p), nil
	case read && p.kind == "issues":
		return g.show(c, p), nil
	case read:
		return problem(http.StatusNotFound, "Not Found"), nil
	case c.Header.Get("Authorization") == "":
		return problem(http.StatusUnauthorized, "Requires authentication"), nil
	case c.Method == http.MethodPost && p.number == 0:
		return g.create(ctx, c, p)
	case c.Method == http.MethodPatch && p.kind == "issues" && p.number > 0:
		return g.update(ctx, c, p)
	}
	return problem(http.StatusNotFound, "Not Found"), nil
}

func problem(status int, message string, details ...map[string]string) *server.Answer {
	body := map[string]any{"message": message}
	if len(details) > 0 {
		body["errors"] = details
	}
	return server.JSON(status, body)
}

// Restore makes again what the log says was made and changed.
func (g *GitHub) Restore(events []oracle.Event) error {
	for _, e := range events {
		if e.Kind != oracle.KindEffect {
			continue
		}
		var o object
		if err := json.Unmarshal(e.Details, &o); err != nil {
			return fmt.Errorf("github: effect in line %d: %w", e.Seq, err)
		}
		g.put(o)
	}
	return nil
}

// put adds the object, or replaces it by its new form.
func (g *GitHub) put(o object) {
	if i := g.index(o.Repo, o.Number); i >= 0 {
		g.objects[i] = o
		return
	}
	g.objects = append(g.objects, o)
}

func (g *GitHub) index(repo string, number int) int {
	for i := range g.objects {
		if g.objects[i].Repo == repo && g.objects[i].Number == number {
			return i
		}
	}
	return -1
}
