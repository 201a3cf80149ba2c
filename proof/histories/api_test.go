package histories

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// asked is what a request asks for.
type asked struct {
	Reference string `json:"reference"`
	KeepID    string `json:"keep_id"`
	Amount    int    `json:"amount"`
	// Draft is what a sending in steps commits.
	Draft string `json:"draft"`

	operation, place, key string
	// by is the client whose request it is, empty for what a rule made.
	by string
	// number counts the sendings of the reference, and over is when it ended without an answer.
	number int
	over   time.Time
}

// watcher is told what arrives at the API, and what takes effect there.
type watcher interface {
	// arrives is called for each mutation before anything comes of it, looks for each read
	// of a script.
	arrives(q asked)
	looks(token string)
	// takes and undoes are called when something takes effect, and when it is taken back.
	takes(q asked)
	undoes(o *object)
	// delays is called when an undo was lost that takes effect later.
	delays(id string)
}

// api is the upstream with its own books.
type api struct {
	plan    *plan
	watcher watcher
	begun   time.Time

	mu sync.Mutex
	// calm makes every fate a good one.
	calm    bool
	objects []*object
	drafts  []*draft
	jobs    []*job
	// keys is what was made, and payload what was last asked, under a vendor key.
	keys    map[string]*object
	payload map[string]payload
	// sendings counts requests by reference, reads counts reads, and others what else was
	// asked, by its matter.
	sendings map[string]int
	reads    int
	others   map[string]int
	// undecided counts requests of which something may still come, by the marker, or by the
	// object of an undo.
	undecided map[string]int
	// carried is the last vendor key of a marker, open whether one of its sendings may
	// have ended without a definite refusal that was read; granted counts new keys by people.
	carried map[string]string
	open    map[string]bool
	granted map[string]bool
	// hanging are sendings that are over without an answer and still take effect, by their markers.
	hanging map[string][]asked
	// seen are the markers that arrived, and showed when an object of theirs was last shown to a reader.
	seen    map[string]bool
	showed  map[string]time.Time
	wrongs  []string
	working sync.WaitGroup
}

func newAPI(p *plan) *api {
	return &api{
		plan: p, begun: time.Now(), keys: map[string]*object{}, payload: map[string]payload{}, sendings: map[string]int{}, others: map[string]int{},
		undecided: map[string]int{}, carried: map[string]string{}, open: map[string]bool{}, granted: map[string]bool{},
		hanging: map[string][]asked{}, seen: map[string]bool{}, showed: map[string]time.Time{},
	}
}

// readers are used again: most connections carry one request.
var readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// serve answers one connection until it ends.
func (a *api) serve(c net.Conn) {
	a.working.Go(func() {
		defer func() { _ = c.Close() }()
		br := readers.Get().(*bufio.Reader)
		defer readers.Put(br)
		br.Reset(c)
		for a.exchange(c, br) {
		}
	})
}

// exchange answers one request, and reports whether the connection goes on.
func (a *api) exchange(c net.Conn, br *bufio.Reader) bool {
	r, err := http.ReadRequest(br)
	if err != nil {
		return false
	}
	what, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch r.Method {
	case http.MethodGet:
		return a.read(c, r, what, rest)
	case http.MethodDelete:
		return a.undo(c, br, rest)
	}
	var q asked
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &q) != nil {
		return false
	}
	q.operation, q.key, q.by = what, r.Header.Get("Idempotency-Key"), r.Header.Get("By")
	switch {
	case what == "places":
		q.operation, q.place = "placed", rest
	case what == "drafts" && rest == "":
		return a.prepare(c, br, q)
	case what == "drafts":
		q = a.drafted(q.Draft)
	}
	return a.mutate(c, br, q)
}

// next is the fate of one more request of a matter.
func (a *api) next(matter string, count map[string]int) (fate, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	count[matter]++
	n := count[matter]
	if a.calm {
		return good, n
	}
	return a.plan.fate(matter, n), n
}

// payload is a request under a vendor key, and when it last came.
type payload struct {
	text string
	at   time.Time
}

// sameRequest holds that a vendor key carries one request for as long as the API may know it.
func (a *api) sameRequest(q asked) {
	if q.key == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	text := fmt.Sprint(q.Reference, " ", q.KeepID, " ", q.Amount)
	if before := a.payload[q.key]; before.text != "" && before.text != text && !a.plan.world.hasForgotten(before.at) {
		a.wrongs = append(a.wrongs, fmt.Sprintf("one vendor key carried two payloads: %s and %s", before.text, text))
	}
	a.payload[q.key] = payload{text: text, at: time.Now()}
	if last := a.carried[q.KeepID]; last != "" && last != q.key {
		if a.open[q.KeepID] && !a.granted[q.KeepID] {
			a.wrongs = append(a.wrongs, "a vendor key was renewed after a sending of unknown outcome")
		}
		a.open[q.KeepID], a.granted[q.KeepID] = false, false
	}
	a.carried[q.KeepID] = q.key
}

// expect changes how much may still come of something.
func (a *api) expect(what string, more int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.undecided[what] += more
}

// grant notes that a person allowed a new vendor key.
func (a *api) grant(marker string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.granted[marker] = true
}

// mutate does what fate says. A commit after the sending's end comes within the bound.
func (a *api) mutate(c net.Conn, br *bufio.Reader, q asked) bool {
	a.expect(q.KeepID, 1)
	defer a.expect(q.KeepID, -1)
	f, n := a.next(q.Reference, a.sendings)
	q.number = n
	if a.watcher != nil {
		a.watcher.arrives(q)
	}
	a.sameRequest(q)
	gone := think(c, br, f.think)
	if gone {
		f.answer = "lost"
	}
	late := gone || f.answer == "lost" || f.answer == "torn" || f.answer == "after 503" || f.believed
	made := ""
	if f.commits && !late {
		made = a.effect(q, f)
	}
	if f.answer != "422" && f.answer != "429" {
		a.mu.Lock()
		a.open[q.KeepID] = true
		a.mu.Unlock()
	}
	on := !gone && answer(c, f, made, `{"reference":"`+q.Reference+`"}`)
	if !on {
		_ = c.Close()
	}
	if f.commits && late {
		q.over = time.Now()
		a.hang(q, !f.believed)
		wait(f.late)
		a.effect(q, f)
		a.fall(q)
	}
	return on
}

// hang notes that a sending is over of which nobody was told that it takes effect.
func (a *api) hang(q asked, untold bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if untold {
		a.hanging[q.KeepID] = append(a.hanging[q.KeepID], q)
	}
}

// fall notes that such a sending took effect.
func (a *api) fall(q asked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hanging[q.KeepID] = slices.DeleteFunc(a.hanging[q.KeepID], func(o asked) bool { return o.number == q.number })
}

// wait lets time pass, if it is any.
func wait(d time.Duration) {
	if d > 0 {
		pause(d)
	}
}

// think waits, or returns true when the caller has gone.
func think(c net.Conn, br *bufio.Reader, d time.Duration) bool {
	if d == 0 {
		return false
	}
	_ = c.SetReadDeadline(time.Now().Add(d))
	_, err := br.Peek(1)
	_ = c.SetReadDeadline(time.Time{})
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// answer writes what fate says, and reports whether the connection goes on. Job is the id of
// what was accepted, if it was no more than that.
func answer(c net.Conn, f fate, job, body string) bool {
	status := "201 Created"
	if job != "" {
		status, body = "202 Accepted", `{"job":"`+job+`"}`
	}
	switch f.answer {
	case "lost":
		return false
	case "torn":
		_, _ = io.WriteString(c, "HTTP/1.1 201 Cre")
		return false
	case "cut":
		_, _ = fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body[:len(body)/2])
		return false
	case "ok":
	case "after 503":
		status = "503 later"
	default:
		status = f.answer + " no"
	}
	_, err := fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	return err == nil && f.keep
}
