package github

import (
	"fmt"
	"time"

	"keep-proxy/internal/fakes/server"
)

// input is what a client may say of an issue or pull request.
type input struct {
	Title     string   `json:"title"`
	Body      *string  `json:"body"`
	Labels    []string `json:"labels"`
	Assignees []string `json:"assignees"`
	State     string   `json:"state"`
	Head      string   `json:"head"`
	Base      string   `json:"base"`
}

// object is an issue or a pull request as the log holds it.
type object struct {
	Repo      string    `json:"repo"`
	Number    int       `json:"number"`
	Title     string    `json:"title"`
	Body      *string   `json:"body"`
	State     string    `json:"state"`
	Labels    []string  `json:"labels"`
	Assignees []string  `json:"assignees"`
	Creator   string    `json:"creator"`
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	Head      string    `json:"head,omitempty"` // set for a pull request
	Base      string    `json:"base,omitempty"`
}

func (o object) pull() bool { return o.Head != "" }

// User is a person or bot.
type User struct {
	Login string `json:"login"`
}

// Label is a label.
type Label struct {
	Name string `json:"name"`
}

// Links marks an entry of the listing as a pull request.
type Links struct {
	URL string `json:"url"`
}

// Issue is an entry as the API shows it. A pull request has PullRequest.
type Issue struct {
	ID          int64   `json:"id"`
	Number      int     `json:"number"`
	URL         string  `json:"url"`
	Title       string  `json:"title"`
	Body        *string `json:"body"`
	State       string  `json:"state"`
	User        User    `json:"user"`
	Labels      []Label `json:"labels"`
	Assignees   []User  `json:"assignees"`
	CreatedAt   string  `json:"created_at"`
	UpdatedAt   string  `json:"updated_at"`
	PullRequest *Links  `json:"pull_request,omitempty"`
}

// shown is the object as the API shows it under this base URL. Times are whole
// seconds there, as the vendor's are.
func (o object) shown(base string, index int) Issue {
	i := Issue{
		ID: 1_000_000 + int64(index), Number: o.Number, Title: o.Title, Body: o.Body, State: o.State,
		URL: fmt.Sprintf("%s/repos/%s/issues/%d", base, o.Repo, o.Number), User: User{Login: o.Creator},
		Labels: []Label{}, Assignees: []User{},
		CreatedAt: o.Created.Format(time.RFC3339), UpdatedAt: o.Updated.Format(time.RFC3339),
	}
	for _, name := range o.Labels {
		i.Labels = append(i.Labels, Label{Name: name})
	}
	for _, login := range o.Assignees {
		i.Assignees = append(i.Assignees, User{Login: login})
	}
	if o.pull() {
		i.PullRequest = &Links{URL: fmt.Sprintf("%s/repos/%s/pulls/%d", base, o.Repo, o.Number)}
	}
	return i
}

func base(r *server.Request) string { return r.Scheme + "://" + r.Host }
