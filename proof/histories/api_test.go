package histories

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// object is what one effect made.
type object struct {
	ID        string `json:"id"`
	Reference string `json:"reference"`
	KeepID    string `json:"keep_id"`
	Amount    int    `json:"amount"`
	visible   time.Time
}

// asked is the body of a request.
type asked struct {
	Reference string `json:"reference"`
	KeepID    string `json:"keep_id"`
	Amount    int    `json:"amount"`
}

// api is the upstream with its own books.
type api struct {
	plan *plan
	// arrived is called for each mutation that arrives, before anything comes of it.
	arrived func(reference string)
	// calm makes every fate a good one.
	calm bool

	mu      sync.Mutex
	objects []*object
	// keys is what was made, and what was asked, under a vendor key.
	keys    map[string]*object
	payload map[string]string
	// sendings counts requests by reference, reads counts reads.
	sendings map[string]int
	reads    int
	// undecided counts requests of which something may still come.
	undecided map[string]int
	// carried is the last vendor key of a reference, open whether one of its sendings may
	// have ended without a definite refusal that was read; granted counts new keys by people.
	carried map[string]string
	open    map[string]bool
	granted map[string]bool
	wrongs  []string
	working sync.WaitGroup
}

func newAPI(p *plan) *api {
	return &api{
		plan: p, arrived: func(string) {}, keys: map[string]*object{}, payload: map[string]string{},
		sendings: map[string]int{}, undecided: map[string]int{}, carried: map[string]string{}, open: map[string]bool{}, granted: map[string]bool{},
	}
}

// effects counts what was made for a reference, and what may still be.
func (a *api) effects(reference string) (made, undecided int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.objects {
		if o.Reference == reference {
			made++
		}
	}
	return made, a.undecided[reference]
}

// serve answers one connection until it ends.
func (a *api) serve(c net.Conn) {
	a.working.Go(func() {
		defer func() { _ = c.Close() }()
		br := bufio.NewReader(c)
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
	if r.Method == http.MethodGet {
		return a.list(c, r)
	}
	body, err := io.ReadAll(r.Body)
	var q asked
	if err != nil || json.Unmarshal(body, &q) != nil {
		return false
	}
	a.mu.Lock()
	a.sendings[q.Reference]++
	n := a.sendings[q.Reference]
	a.undecided[q.Reference]++
	calm := a.calm
	a.mu.Unlock()
	a.arrived(q.Reference)
	f := a.plan.fate(q.Reference, n)
	if calm {
		f = fate{commits: true, answer: "ok", keep: true}
	}
	key := r.Header.Get("Idempotency-Key")
	a.sameRequest(key, q)
	return a.mutate(c, br, q, key, f)
}

// sameRequest holds that a vendor key carries one request.
func (a *api) sameRequest(key string, q asked) {
	if key == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	text := fmt.Sprint(q)
	if before, ok := a.payload[key]; ok && before != text {
		a.wrongs = append(a.wrongs, fmt.Sprintf("one vendor key carried two payloads: %s and %s", before, text))
	}
	a.payload[key] = text
	if last := a.carried[q.Reference]; last != "" && last != key {
		if a.open[q.Reference] && !a.granted[q.Reference] {
			a.wrongs = append(a.wrongs, "a vendor key was renewed after a sending of unknown outcome")
		}
		a.open[q.Reference], a.granted[q.Reference] = false, false
	}
	a.carried[q.Reference] = key
}

// unsure notes that a sending ended without a definite refusal.
func (a *api) unsure(reference string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open[reference] = true
}

// grant notes that a person allowed a new vendor key.
func (a *api) grant(reference string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.granted[reference] = true
}

// mutate does what fate says. A commit after the sending's end comes within the bound.
func (a *api) mutate(c net.Conn, br *bufio.Reader, q asked, key string, f fate) bool {
	gone := a.think(c, br, f.think)
	if gone {
		f.answer = "lost"
	}
	late := gone || f.answer == "lost" || f.answer == "torn" || f.answer == "after 503"
	if f.commits && !late {
		a.commit(q, key, f.shows)
	}
	if f.answer != "422" && f.answer != "429" {
		a.unsure(q.Reference)
	}
	on := !gone && a.answer(c, q, f)
	if !on {
		_ = c.Close()
	}
	if f.commits && late {
		if f.late > 0 {
			wait := time.NewTimer(f.late)
			<-wait.C
		}
		a.commit(q, key, f.shows)
	}
	a.mu.Lock()
	a.undecided[q.Reference]--
	a.mu.Unlock()
	return on
}

// think waits, or returns true when the caller has gone.
func (a *api) think(c net.Conn, br *bufio.Reader, d time.Duration) bool {
	if d == 0 {
		return false
	}
	_ = c.SetReadDeadline(time.Now().Add(d))
	_, err := br.Peek(1)
	_ = c.SetReadDeadline(time.Time{})
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// commit takes effect, unless the vendor key did before.
func (a *api) commit(q asked, key string, shows time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if key != "" && a.keys[key] != nil {
		return
	}
	o := &object{
		ID: fmt.Sprintf("o%d", len(a.objects)+1), Reference: q.Reference, KeepID: q.KeepID, Amount: q.Amount,
		visible: time.Now().Add(shows),
	}
	a.objects = append(a.objects, o)
	if key != "" {
		a.keys[key] = o
	}
}

// answer writes what fate says, and reports whether the connection goes on.
func (a *api) answer(c net.Conn, q asked, f fate) bool {
	status, body := "201 Created", `{"reference":"`+q.Reference+`"}`
	switch f.answer {
	case "lost":
		return false
	case "torn":
		_, _ = io.WriteString(c, "HTTP/1.1 201 Cre")
		return false
	case "cut":
		_, _ = fmt.Fprintf(c, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:5])
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

// page is one object of those that can be seen of a reference now, newest first, so that what
// is made meanwhile shifts the pages that follow. Some are other people's.
func (a *api) page(q url.Values) map[string]any {
	reference := q.Get("reference")
	r := drawn(a.plan.seed, "others "+reference, 0)
	var all []*object
	for n := range r.IntN(3) {
		all = append(all, &object{ID: fmt.Sprintf("other-%d", n), Reference: reference, KeepID: "somebody's"})
	}
	older := r.IntN(len(all) + 1)
	ours := []*object{}
	for _, o := range slices.Backward(a.objects) {
		if o.Reference == reference && !o.visible.After(time.Now()) {
			ours = append(ours, o)
		}
	}
	all = slices.Concat(all[older:], ours, all[:older])
	at, err := strconv.Atoi(q.Get("cursor"))
	if err != nil {
		at = 0
	}
	at = min(at, len(all))
	end := min(at+1, len(all))
	return map[string]any{"items": append([]*object{}, all[at:end]...), "more": end < len(all), "next": strconv.Itoa(end)}
}

// list answers a page of what can be seen of a reference now.
func (a *api) list(c net.Conn, r *http.Request) bool {
	a.mu.Lock()
	a.reads++
	f := a.plan.fate("read", a.reads)
	if a.calm {
		f = fate{answer: "ok", keep: true}
	}
	text, err := json.Marshal(a.page(r.URL.Query()))
	a.mu.Unlock()
	if err != nil {
		return false
	}
	head := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	switch f.answer {
	case "lost", "torn":
		return false
	case "cut":
		_, _ = fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n%s", head, len(text), text[:len(text)/2])
		return false
	case "500", "503", "429", "after 503":
		head = strings.Replace(head, "200 OK", f.answer[:min(3, len(f.answer))]+" no", 1)
		head = strings.Replace(head, " aft", " 503", 1)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%sContent-Length: %d\r\n\r\n%s", head, len(text), text)
	_, err = c.Write(b.Bytes())
	return err == nil && f.keep
}
