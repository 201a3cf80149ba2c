// Package mail is an API that sends messages, at once or through a draft.
//
//	POST /drafts {"to", "subject", "text"}
//	    → 201 {"id", "subject"}; a draft is no message yet.
//	GET /drafts/{id}
//	    → 200 {"id", "subject"}; 404 for one that was sent or never was.
//	POST /drafts/send {"id"}
//	    → 200 {"id", "to", "subject", "text", "draft", "at"}; 404 for a draft that is gone.
//	POST /send {"to", "subject", "text"}
//	    → 200, the message; without a draft, it can't be told from another one.
//	GET /sent?subject=
//	    → 200 {"items": [...]}
//
//	GET /me
//	    → 200 {"email"} for "Authorization: Bearer NAME", else 401
//
// Errors are {"error": ...}. The id of a draft is its subject and a number, joined by a
// dot.
//
// Identities in the log are mail:SUBJECT, and draft:SUBJECT for requests that make a draft. Their effect is draft:ID,
// as each draft is another one.
package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
)

// Mail is the fake.
type Mail struct {
	mu     sync.Mutex
	made   int
	drafts []Message
	sent   []Message
}

// New returns the API.
func New() *Mail { return &Mail{} }

// Message is a draft or a message that was sent.
type Message struct {
	ID      string `json:"id"`
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
	// Draft is the id of the draft that it was sent through.
	Draft string `json:"draft,omitempty"`
	// At is when it was made.
	At time.Time `json:"at"`
}

// Name returns "mail".
func (*Mail) Name() string { return "mail" }

// Identity names a draft or a message by its subject.
func (*Mail) Identity(r *server.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return ""
	}
	var m Message
	_ = json.Unmarshal(r.Body, &m) // what can't be read has no subject
	switch r.Path {
	case "/drafts":
		return "draft:" + m.Subject
	case "/drafts/send":
		subject, _, _ := strings.Cut(m.ID, ".")
		return "mail:" + subject
	case "/send":
		return "mail:" + m.Subject
	}
	return r.Method + " " + r.Path
}

// Restore makes again what the log says was made.
func (a *Mail) Restore(events []oracle.Event) error {
	for _, e := range events {
		if e.Kind != oracle.KindEffect {
			continue
		}
		var m Message
		if err := json.Unmarshal(e.Details, &m); err != nil {
			return fmt.Errorf("mail: effect in line %d: %w", e.Seq, err)
		}
		a.keep(strings.HasPrefix(e.Identity, "draft:"), m)
	}
	return nil
}

// keep takes in a draft, or a message in the place of its draft.
func (a *Mail) keep(draft bool, m Message) {
	if draft {
		a.made++
		a.drafts = append(a.drafts, m)
		return
	}
	a.sent = append(a.sent, m)
	a.drafts = slices.DeleteFunc(a.drafts, func(d Message) bool { return d.ID == m.Draft })
}

// Serve answers a request.
func (a *Mail) Serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	id, single := strings.CutPrefix(c.Path, "/drafts/")
	reads := c.Method == http.MethodGet || c.Method == http.MethodHead
	switch {
	case reads && c.Path == "/me":
		return who(c.Header.Get("Authorization")), nil
	case reads && c.Path == "/sent":
		return a.list(c.Query.Get("subject")), nil
	case reads && single:
		return a.find(id), nil
	case c.Method == http.MethodPost && slices.Contains([]string{"/drafts", "/drafts/send", "/send"}, c.Path):
		return a.make(ctx, c)
	}
	return problem(http.StatusNotFound, "there is nothing at "+c.Path), nil
}

// who tells whose token it is.
func who(authorization string) *server.Answer {
	name, ok := strings.CutPrefix(authorization, "Bearer ")
	if !ok || name == "" {
		return problem(http.StatusUnauthorized, "who are you?")
	}
	return server.JSON(http.StatusOK, map[string]string{"email": name + "@mail.test"})
}

func problem(status int, message string) *server.Answer {
	return server.JSON(status, map[string]string{"error": message})
}

// make makes a draft, or sends a message.
func (a *Mail) make(ctx context.Context, c *server.Call) (*server.Answer, error) {
	var m Message
	if err := json.Unmarshal(c.Body, &m); err != nil {
		return problem(http.StatusBadRequest, err.Error()), nil
	}
	if err := c.Pause(ctx); err != nil {
		return nil, err
	}
	if c.NoEffect {
		return c.Own, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	status := http.StatusOK
	switch c.Path {
	case "/drafts":
		status, m.ID = http.StatusCreated, fmt.Sprintf("%s.%d", m.Subject, a.made+1)
	case "/drafts/send":
		i := slices.IndexFunc(a.drafts, func(d Message) bool { return d.ID == m.ID })
		if i < 0 {
			return problem(http.StatusNotFound, "no draft "+m.ID), nil
		}
		m = a.drafts[i]
		m.ID, m.Draft = fmt.Sprintf("m_%d", len(a.sent)+1), m.ID
	default:
		m.ID = fmt.Sprintf("m_%d", len(a.sent)+1)
	}
	m.At = c.Now().UTC()
	identity := a.Identity(c.Request)
	if c.Path == "/drafts" {
		identity = "draft:" + m.ID
	}
	if err := c.Commit(identity, m, nil); err != nil {
		return nil, err
	}
	a.keep(c.Path == "/drafts", m)
	if c.Own != nil {
		return c.Own, nil
	}
	return server.JSON(status, m), nil
}

func (a *Mail) find(id string) *server.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.drafts {
		if d.ID == id {
			return server.JSON(http.StatusOK, d)
		}
	}
	return problem(http.StatusNotFound, "no draft "+id)
}

func (a *Mail) list(subject string) *server.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []Message{}
	for _, m := range a.sent {
		if m.Subject == subject {
			items = append(items, m)
		}
	}
	return server.JSON(http.StatusOK, map[string]any{"items": items})
}
