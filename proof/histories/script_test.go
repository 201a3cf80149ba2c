package histories

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/proxy"
)

// reply is what a script got; status 0 means no whole answer.
type reply struct {
	status  int
	problem string
}

// script executes the runs of one item, one after the other.
func (h *history) script(ctx context.Context, item itemPlan) {
	for _, r := range item.runs {
		pause(r.after)
		h.execute(ctx, item, r)
	}
}

// execute is one run: its steps, until one fails for good.
func (h *history) execute(ctx context.Context, item itemPlan, r runPlan) {
	p := h.machine.up()
	if p == nil {
		return
	}
	token := fmt.Sprintf("token-%d", r.number)
	open := ledger.OpenRun{
		Workflow: workflow, Item: item.name, TTL: time.Hour, TokenSHA256: proxy.TokenDigest(token), Takeover: r.takeover,
		BlockScope: ledger.BlockScope(r.scope),
	}
	named := ""
	if r.many {
		open.Item, open.Items, named = "", ledger.ItemsMany, item.name
	}
	opened, err := p.ledger.OpenRun(ctx, open)
	if err != nil {
		return // Busy, stopped, or the machine went down.
	}
	for _, s := range r.steps {
		if !h.perform(ctx, p, token, named, s) {
			return
		}
	}
	_, _ = p.ledger.FinishRun(ctx, opened.ID, ledger.OutcomeDone, true)
}

// perform asks for one step as often as the script does. Item is named where the run has
// many.
func (h *history) perform(ctx context.Context, p *process, token, item string, s step) bool {
	for range s.tries {
		switch got := h.post(ctx, p, token, item, s); {
		case got.status >= 200 && got.status < 300:
			return true
		case got.problem == "repeated":
			return true
		}
		pause(s.pause)
	}
	return false
}

// post sends a request through the proxy and reads the whole answer.
func (h *history) post(ctx context.Context, p *process, token, item string, s step) reply {
	c, err := p.door.dial()
	if err != nil {
		return reply{}
	}
	defer func() { _ = c.Close() }()
	if s.patience > 0 {
		_ = c.SetDeadline(time.Now().Add(s.patience))
	}
	body := fmt.Sprintf(`{"reference":%q,"amount":%d}`, s.reference, s.amount)
	user := base64.StdEncoding.EncodeToString([]byte("run:" + token))
	head := "POST http://" + host + "/" + s.operation + " HTTP/1.1\r\nHost: " + host + "\r\nProxy-Authorization: Basic " + user +
		"\r\nContent-Type: application/json\r\nConnection: close\r\n"
	if item != "" {
		head += "Keep-Item: " + item + "\r\n"
	}
	if _, err := fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n%s", head, len(body), body); err != nil {
		return reply{}
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
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
	got := reply{resp.StatusCode, strings.TrimPrefix(problem.Type, "urn:keep:problem:")}
	if got.status >= 200 && got.status < 300 {
		h.told(ctx, p, s)
	}
	return got
}

// told is that a script was told that a step happened: then it did, and that is durable.
func (h *history) told(ctx context.Context, p *process, s step) {
	if made, _ := h.api.effects(s.reference); made == 0 {
		h.wrongf("a script was told that %s happened, and it never did", s.operation)
	}
	page, err := p.ledger.Mutations(ctx, ledger.Filter{Workflow: workflow, Limit: 100})
	if err != nil {
		return
	}
	for _, m := range page.Items {
		if m.Identity["reference"] == fmt.Sprintf("%q", s.reference) && m.State != ledger.Applied && !m.Committed && !h.machine.isDown(p) {
			h.wrongf("a script was told that %s happened before that was durable: %s", s.operation, m.State)
		}
	}
}

// pause lets time pass.
func pause(d time.Duration) {
	t := time.NewTimer(d)
	<-t.C
}
