package reconcilers

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"keep-proxy/internal/clock"
)

// thing is what the API makes.
type thing struct {
	ID        string `json:"id"`
	Reference string `json:"reference"`
	KeepID    string `json:"keep_id"`
	Note      string `json:"note,omitempty"`
	Key       string `json:"-"`
	// At is when it was made.
	At time.Time `json:"at"`
}

// api is an upstream that counts for itself. It dedupes on Idempotency-Key.
type api struct {
	server *httptest.Server
	clock  *clock.Fake

	mu     sync.Mutex
	things []thing
	posts  []*http.Request
	gets   []*http.Request
	// before may answer a request itself, by returning true.
	before   func(w http.ResponseWriter, r *http.Request) bool
	pageSize int
}

func newAPI(t tester, c *clock.Fake) *api {
	t.Helper()
	a := &api{clock: c, pageSize: 100}
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	return a
}

func (a *api) host() string { return strings.TrimPrefix(a.server.URL, "http://") }

// commit is an effect whose answer nobody saw.
func (a *api) commit(reference, marker, key string) thing {
	a.mu.Lock()
	defer a.mu.Unlock()
	made, _ := a.once(thing{Reference: reference, KeepID: marker, Key: key})
	return made
}

// once makes a thing unless its key is known; it reports whether it was.
func (a *api) once(made thing) (_ thing, known bool) {
	for _, t := range a.things {
		if t.Key != "" && t.Key == made.Key {
			return t, true
		}
	}
	made.At = a.clock.Now().UTC()
	made.ID = "t" + strconv.Itoa(len(a.things)+1)
	a.things = append(a.things, made)
	return made, false
}

// answering makes the API answer each following request with this.
func (a *api) answering(status int, header http.Header, body string) {
	a.script(func(w http.ResponseWriter, _ *http.Request) bool {
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	})
}

// script sets what comes before the API's own answer.
func (a *api) script(before func(w http.ResponseWriter, r *http.Request) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.before = before
}

// counts returns how many mutations and reads arrived, and how many things exist.
func (a *api) counts() (posts, gets, things int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.posts), len(a.gets), len(a.things)
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	a.mu.Lock()
	if r.Method == http.MethodPost {
		a.posts = append(a.posts, r)
	} else {
		a.gets = append(a.gets, r)
	}
	before := a.before
	a.mu.Unlock()
	w.Header().Set("Date", a.clock.Now().Format(http.TimeFormat))
	if before != nil && before(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Method == http.MethodPost {
		a.post(w, r, body)
		return
	}
	a.list(w, r)
}

func (a *api) post(w http.ResponseWriter, r *http.Request, body []byte) {
	asked := thing{Key: r.Header.Get("Idempotency-Key")}
	if json.Unmarshal(body, &asked) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	made, known := a.once(asked)
	if known {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	write(w, http.StatusCreated, made)
}

func (a *api) list(w http.ResponseWriter, r *http.Request) {
	var found []thing
	for _, t := range a.things {
		if t.Reference == r.FormValue("reference") {
			found = append(found, t)
		}
	}
	from, _ := strconv.Atoi(r.FormValue("cursor"))
	page := struct {
		Items []thing `json:"items"`
		Next  string  `json:"next"`
	}{Items: []thing{}}
	page.Items = append(page.Items, found[min(from, len(found)):]...)
	if len(page.Items) > a.pageSize {
		page.Items = page.Items[:a.pageSize]
		page.Next = strconv.Itoa(from + a.pageSize)
	}
	write(w, http.StatusOK, page)
}

func write(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// cut answers with a head that announces more than follows.
func cut(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Length", "100")
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, `{"items":[`)
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// hangUp closes the connection without an answer.
func hangUp(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
