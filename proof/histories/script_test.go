package histories

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/proxy"
)

// reply is what a script got; status 0 means no whole answer.
type reply struct {
	status  int
	problem string
	// mutation is the id that the answer names, and replayed says that it is a stored one.
	mutation string
	replayed bool
}

// script executes the runs of one item, one after the other.
func (h *history) script(ctx context.Context, item itemPlan) {
	for _, r := range item.runs {
		pause(r.after)
		h.execute(ctx, item, r)
	}
}

// execute is one run: its steps, until one fails for good, or whatever becomes of them.
func (h *history) execute(ctx context.Context, item itemPlan, r runPlan) {
	p := h.machine.up()
	if p == nil {
		return
	}
	token := fmt.Sprintf("token-%d", r.number)
	open := ledger.OpenRun{
		Workflow: workflow, Item: item.name, TTL: time.Hour, TokenSHA256: proxy.TokenDigest(token), Takeover: r.takeover,
		BlockScope: ledger.BlockScope(r.scope), Mutations: r.mutations,
	}
	named := ""
	switch {
	case r.loose:
		h.loose(ctx, p, item, r)
		return
	case r.many:
		open.Item, open.Items, named = "", ledger.ItemsMany, item.name
	case r.once:
		open.Item, open.Once = "", true
	}
	opened, err := p.ledger.OpenRun(ctx, open)
	if err != nil {
		return // Busy, stopped, done, or the machine went down.
	}
	c := &caller{h: h, process: p, token: token, by: token, named: named, run: h.begin(token, opened, item, r)}
	if c.performs(ctx, r) {
		_, _ = p.ledger.FinishRun(ctx, opened.ID, ledger.OutcomeDone, !r.closes)
	}
}

// performs goes through a run's steps, and reports whether all of them came to their end.
func (c *caller) performs(ctx context.Context, r runPlan) (whole bool) {
	whole = true
	for _, s := range r.steps {
		if r.looks {
			c.look(s)
		}
		if done := c.perform(ctx, s); !done && !r.stubborn {
			return false
		} else if !done {
			whole = false
		}
	}
	return whole
}

// caller is a script's client. Token is empty for an unmanaged one, by is how its requests
// name it to the API, and named the item, where the run has many or there is none.
type caller struct {
	h                *history
	process          *process
	token, by, named string
	run              *running
}

// perform asks for one step as often as the script does.
func (c *caller) perform(ctx context.Context, s step) bool {
	for range s.tries {
		c.asks(s)
		began := time.Now()
		c.posts(s.reference, began)
		got := c.post(s)
		c.posts(s.reference, time.Time{})
		if got.status >= 200 && got.status < 300 {
			c.told(ctx, s, got, began)
			return true
		}
		switch got.problem {
		case "repeated":
			return true
		case "blocked", "unknown-outcome":
			c.run.stopped = c.token != "" // Others can't be ended.
		case "verify-failed", "forgotten":
			c.unanswered(got, began)
		}
		pause(s.pause)
	}
	return false
}

// posts notes since when the script waits for an answer; zero for not any more.
func (c *caller) posts(reference string, since time.Time) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	c.run.posted[reference] = since
}

// asks notes what the script wants.
func (c *caller) asks(s step) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	note(c.h.asked, s.reference, s.subkey)
	c.run.asked[s.reference] = true
	note(c.run.intents, s.reference, s.subkey)
}

func note(in map[string]map[string]bool, name, value string) {
	if in[name] == nil {
		in[name] = map[string]bool{}
	}
	in[name][value] = true
}

// post sends a step through the proxy and reads the whole answer.
func (c *caller) post(s step) reply {
	method, path, head := http.MethodPost, "/"+s.operation, ""
	if s.operation == "placed" {
		method, path = http.MethodPut, "/places/"+s.place
	}
	if s.subkey != "" {
		head = "Keep-Subkey: " + s.subkey + "\r\n"
	}
	if c.named != "" {
		head += "Keep-Item: " + c.named + "\r\n"
	}
	body := fmt.Sprintf(`{"reference":%q,"amount":%d}`, s.reference, s.amount)
	head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	return c.send(method, hostOf(s.operation), path, head, body, s.patience)
}

// look reads as the script. One of a run that was stopped gets nothing.
func (c *caller) look(s step) {
	got := c.send(http.MethodGet, hostOf(s.operation), "/things?reference="+s.reference+"&by="+c.by, "", "", 0)
	if got.status == http.StatusOK && c.run.stopped {
		c.h.wrongf("a run read after it was stopped")
	}
}

// send is one request of the script and the answer to it.
func (c *caller) send(method, host, path, head, body string, patience time.Duration) reply {
	conn, err := c.process.door.dial()
	if err != nil {
		return reply{}
	}
	defer func() { _ = conn.Close() }()
	if patience > 0 {
		_ = conn.SetDeadline(time.Now().Add(patience))
	}
	if c.token != "" {
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("run:"+c.token)) + "\r\n"
	}
	if _, err := fmt.Fprintf(conn, "%s http://%s%s HTTP/1.1\r\nHost: %s\r\nBy: %s\r\nConnection: close\r\n%s\r\n%s",
		method, host, path, host, c.by, head, body); err != nil {
		return reply{}
	}
	br := readers.Get().(*bufio.Reader)
	defer readers.Put(br)
	br.Reset(conn)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		return reply{}
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return reply{}
	}
	var problem struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(text, &problem)
	if says := resp.Header.Get("Keep-Scope"); (says == "unmanaged") != (c.token == "") {
		c.h.wrongf("an answer says of its scope %q, and its caller has the token %q", says, c.token)
	}
	return reply{
		resp.StatusCode, strings.TrimPrefix(problem.Type, "urn:keep:problem:"), resp.Header.Get("Keep-Mutation"),
		resp.Header.Get("Keep-Replayed") != "",
	}
}

// told judges that a script was told that a step happened: then it did, with what was asked,
// that is durable, and the run was not stopped before.
func (c *caller) told(ctx context.Context, s step, got reply, began time.Time) {
	h := c.h
	if c.run.stopped {
		h.wrongf("a run went on after it was stopped")
	}
	var m *ledger.Mutation
	_ = h.machine.stored(func(s stored) error {
		m = h.record(s, func(m *ledger.Mutation) bool { return m.ID == got.mutation })
		return nil
	})
	if m == nil {
		h.wrongf("a script was told that %s happened, of which there is no record", s.operation)
		return
	}
	h.answers(s, m, c.run)
	h.allowed(m, c.run)
	c.own(s)
	h.replays(s, m, got, began)
	amounts := h.api.amounts(m.Marker)
	if len(amounts) == 0 && !h.plan.world.isBelieved() {
		h.wrongf("a script was told that %s happened, and it never did", s.operation)
	}
	h.mu.Lock()
	covered := slices.Contains(amounts, s.amount) || h.accepted[m.ID][s.amount]
	h.mu.Unlock()
	covered = covered || !h.removedAt(m.Key).IsZero() // Another record answered for it.
	if len(amounts) > 0 && !covered {
		h.wrongf("a script was told that %s happened with another payload than it did", s.operation)
	}
	accepted := slices.ContainsFunc(m.Dispatches, func(d ledger.Dispatch) bool { return d.Verdict == ledger.VerdictAccepted })
	if got.status == http.StatusAccepted && accepted {
		h.count(func(c *counts) { c.jobs++ })
		return
	}
	if m.State != ledger.Applied && !m.Committed && !h.machine.isDown(c.process) {
		h.wrongf("a script was told that %s happened before that was durable: %s", s.operation, m.State)
	}
}

// own judges that what a run with once was told of took effect for it, and not for another one. A
// commit of steps doesn't say for whom it is, and a job may be done later.
func (c *caller) own(s step) {
	if !c.run.plan.once || s.operation == "drafted" || s.operation == "watched" || c.h.plan.world.isBelieved() {
		return
	}
	if c.h.api.totalBy(s.reference, c.by) == 0 {
		c.h.wrongf("a script was told that %s happened for its run with once, and it never did", s.operation)
	}
}

// answers notes what a run was told of.
func (h *history) answers(s step, m *ledger.Mutation, run *running) {
	h.mu.Lock()
	defer h.mu.Unlock()
	note(h.answered, s.reference, s.subkey)
	if _, before := run.told[s.reference]; !before && s.operation == "dear" {
		h.tick++
		run.told[s.reference] = told{h.tick, m.Attempt}
	}
}

// pause lets time pass.
func pause(d time.Duration) {
	t := time.NewTimer(d)
	<-t.C
}
