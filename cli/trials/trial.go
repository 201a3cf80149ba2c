package trials

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/fakes/data"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fakes/server"
	"keep-proxy/rules"
)

const (
	// patience bounds one trial on the machine's clock. Only what is broken takes so long.
	patience = time.Minute
	// apart is how much time passes between two trials. What is older than 25 hours can't have made what a probe finds.
	// No connection is kept so long.
	apart = 26*time.Hour + 200*time.Millisecond
	// way is how long a request is on its way.
	way = 20 * time.Millisecond
	// rounds is how often a script is run again, or the program looked after, before a trial gives up.
	rounds = 60
)

// trial is one trial of one operation.
type trial struct {
	*bench
	ctx      context.Context
	sample   rules.Sample
	api      *client.Client
	fake     *data.Fake
	server   *server.Server
	log      *oracle.Log
	workflow string
	// refusable says that the API may refuse a second effect for good.
	refusable bool
	sent      int
	last      reply // what the script got last
	// waits says what for.
	waits string
	ids   map[string]string // of records, by items
	open  map[string]bool   // items whose outcome wasn't known when it was last looked at
}

// reply is what the script got. Refused is why its run could not be opened.
type reply struct {
	status  int
	header  http.Header
	body    []byte
	refused string
	err     error
}

func (r reply) replayed() bool { return r.header.Get("Keep-Replayed") == "true" }

// String tells the reply to a person.
func (r reply) String() string {
	switch {
	case r.refused != "":
		return "no run: " + r.refused
	case r.err != nil:
		return "no answer: " + r.err.Error()
	}
	var p wire.Problem
	if json.Unmarshal(r.body, &p) == nil && p.Detail != "" {
		return fmt.Sprintf("%d %s", r.status, p.Detail)
	}
	return fmt.Sprintf("%d %s %s", r.status, r.header.Get("Keep-State"), bytes.TrimSpace(r.body[:min(len(r.body), 200)]))
}

// try makes one trial. Where what was found belongs to another mutation, it may be an earlier trial's, whose object had
// the same id. Then the trial is made once more, with a program that knows of none.
func (b *bench) try(ctx context.Context, one Kind, s rules.Sample) (Cell, error) {
	b.doubtful, b.stuck = false, false
	cell, err := b.once(ctx, one, s)
	again := b.doubtful && b.tries > 1
	if err == nil && (again || b.stuck) {
		err = errors.Join(b.stop(), b.start(ctx)) //nolint:contextcheck // It stops also when ctx has ended.
	}
	if err != nil || !again {
		return cell, err
	}
	return b.once(ctx, one, s)
}

// once makes one trial, with a fake of its own. One that takes too long is cut off.
func (b *bench) once(ctx context.Context, one Kind, s rules.Sample) (cell Cell, err error) {
	b.clock.Advance(b.clock.Now().Truncate(time.Second).Add(apart).Sub(b.clock.Now()))
	b.number++
	b.tries++
	bounded, cancel := context.WithTimeout(ctx, cmp.Or(b.o.patience, patience))
	defer cancel()
	t := &trial{
		bench: b, ctx: bounded, sample: s, api: b.api, workflow: fmt.Sprintf("trial-%d", b.number), ids: map[string]string{}, open: map[string]bool{},
	}
	if err := t.serve(); err != nil { //nolint:contextcheck // What it starts ends with the trial.
		return Cell{}, err
	}
	defer context.AfterFunc(bounded, func() { _ = t.server.Close() })()
	cell, seen := one.run(t)
	switch b.stuck = bounded.Err() != nil; {
	case ctx.Err() != nil:
		err = ctx.Err()
	case b.stuck:
		cell = Cell{Outcome: Failed, Said: "it takes too long; it waits for " + t.waits}
	case seen != nil:
		cell = Cell{Outcome: Failed, Said: seen.Error()}
	}
	cell.Trial = one.Name
	return cell, errors.Join(err, t.end())
}

// distant is a fake some way off: what it does is a little later than what was done before it was asked.
type distant struct {
	*data.Fake
	clock *clock.Fake
}

// Serve serves once the request has come.
func (d distant) Serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	d.clock.Advance(way)
	return d.Fake.Serve(ctx, c)
}

// serve starts the fake.
func (t *trial) serve() error {
	var err error
	t.fake = t.bench.fake.Fresh(t.number * 1000)
	cfg := server.Config{API: distant{t.fake, t.clock}, Now: t.clock.Now}
	if t.sample.Request.Scheme == "https" {
		if cfg.Certificate, err = t.ca.Leaf(t.hosts...); err != nil {
			return err
		}
	}
	if t.log, err = oracle.Open(filepath.Join(t.dir, t.workflow+".log"), t.clock.Now); err != nil {
		return err
	}
	cfg.Log = t.log
	if t.server, err = server.Start(cfg); err != nil {
		return errors.Join(err, t.log.Close())
	}
	address := t.server.Addr()
	t.upstream.Store(&address)
	return nil
}

// end leaves nothing behind that could reach the next fake.
func (t *trial) end() error {
	for item, open := range t.open {
		if !open {
			continue
		}
		if m, err := t.mutation(item); err == nil && unresolved(m) {
			over := wire.Resolve{Action: wire.ActionSkip, Reason: "the trial is over", Actor: "trials", Version: m.Version, Force: true}
			_, _ = t.api.Resolve(t.ctx, m.ID, over)
		}
	}
	t.upstream.Store(nil)
	t.down.Store(false)
	return errors.Join(t.server.Close(), t.log.Close())
}

func unresolved(m *wire.Mutation) bool { return asking(m) || m.State == "indeterminate" }

// asking reports whether the program still finds out what happened.
func asking(m *wire.Mutation) bool { return m.State == "in_flight" || m.State == "needs_reconcile" }

// arm has the next request that changes something meet the steps.
func (t *trial) arm(name string, steps ...script.Step) error {
	return t.server.Arm(script.Fault{Name: name, Match: t.own(), Steps: steps})
}

// own fits requests that make the effect, and not those that prepare it.
func (t *trial) own() script.Match {
	return script.Match{Method: "*", When: func(s script.Subject) bool {
		return s.Identity != "" && !strings.HasPrefix(s.Identity, data.Prepares)
	}}
}

// send runs the script for an item: one run, one request.
func (t *trial) send(item string, request rules.Raw) (got reply) {
	defer func() { t.last = got }()
	t.waits = "the answer to item " + item
	t.open[item] = true
	opened, err := t.api.OpenRun(t.ctx, wire.OpenRun{Workflow: t.workflow + item, Item: item, Takeover: true, OnFailure: "abort"}, "")
	if err != nil {
		if p, ok := errors.AsType[*wire.Problem](err); ok {
			return reply{refused: p.Name()}
		}
		return reply{err: err}
	}
	proxy, err := url.Parse(opened.ProxyURL)
	if err != nil {
		return reply{err: err}
	}
	proxy.User = url.UserPassword("run", opened.Token)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(opened.CAPEM))
	transport := &http.Transport{
		Proxy: http.ProxyURL(proxy), DisableKeepAlives: true, DisableCompression: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, Time: t.clock.Now, CurvePreferences: []tls.CurveID{tls.X25519}},
	}
	if t.sent++; t.o.edit != nil {
		request = t.o.edit(t.sent, request)
	}
	r, err := http.NewRequestWithContext(t.ctx, request.Method, request.Scheme+"://"+request.Authority+request.Target, bytes.NewReader(request.Body))
	if err != nil {
		return reply{err: err}
	}
	r.Header = request.Header.Clone()
	t.authorise(r)
	r.GetBody = nil // The transport doesn't try again by itself.
	here := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := (&http.Client{Transport: transport, CheckRedirect: here}).Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = answer.Body.Close() }()
	t.ids[item] = answer.Header.Get("Keep-Mutation")
	t.open[item] = answer.Header.Get("Keep-State") != "applied"
	body, err := io.ReadAll(answer.Body)
	return reply{status: answer.StatusCode, header: answer.Header, body: body, err: err}
}

// authorise gives the script the credentials that the fake's configuration has, as far as a header field takes them.
func (t *trial) authorise(r *http.Request) {
	credentials, _ := t.fake.Configure()["credentials"].(map[string]any)
	name, _ := credentials["header"].(string)
	value, _ := credentials["value"].(string)
	if name != "" && r.Header.Get(name) == "" {
		r.Header.Set(name, value)
	}
}

// mutation is the record of an item; to have none is an error. What takes its effect back isn't meant.
func (t *trial) mutation(item string) (*wire.Mutation, error) {
	if t.ids[item] == "" {
		list, err := t.api.Mutations(t.ctx, client.Filter{Workflow: t.workflow + item})
		if err != nil {
			return nil, err
		}
		for _, m := range list.Items {
			if m.Undo == nil {
				t.ids[item] = m.ID
			}
		}
		if t.ids[item] == "" {
			return nil, fmt.Errorf("nothing is recorded: it is refused, or is no mutation: %s", t.last)
		}
	}
	m, err := t.api.Mutation(t.ctx, t.ids[item])
	t.open[item] = err != nil || unresolved(m)
	return m, err
}

// pass lets time pass. What is due meanwhile is done at its time.
func (t *trial) pass(item string, d time.Duration) error {
	until := t.clock.Now().Add(d)
	m, err := t.mutation(item)
	for range rounds {
		if err != nil || !asking(m) || m.NextTryAt.After(until) {
			break
		}
		m, err = t.look(item, m)
	}
	if err != nil {
		return err
	}
	return t.advance(until)
}

// look moves the clock on to the record's next try, has it made, and returns what the record is then.
func (t *trial) look(item string, m *wire.Mutation) (*wire.Mutation, error) {
	if err := t.advance(m.NextTryAt); err != nil {
		return nil, err
	}
	now, err := t.mutation(item)
	if err == nil && asking(now) && now.Version == m.Version {
		err = fmt.Errorf("the program doesn't go on with %s, which is %s: %s", m.ID, m.State, m.Reason)
	}
	return now, err
}

// advance moves the clock on, and has done what is due then.
func (t *trial) advance(until time.Time) error {
	t.waits = "the program's tries"
	t.clock.Advance(max(until.Sub(t.clock.Now()), 0))
	t.app.Round(t.ctx)
	return t.ctx.Err()
}

// tally is the fake's log, with the effects that count. A state that is set again is no second effect.
func (t *trial) tally() (effects []oracle.Event, sends int, err error) {
	all, err := t.server.Tally()
	if err != nil {
		return nil, 0, err
	}
	set := map[string]bool{}
	for _, e := range all.Events {
		if e.Identity == "" || strings.HasPrefix(e.Identity, data.Prepares) {
			continue
		}
		switch e.Kind { //nolint:exhaustive // The others tell of no change.
		case oracle.KindEffect:
			if again := data.Did(e) == "set" && set[e.Identity]; !again {
				effects = append(effects, e)
			}
			set[e.Identity] = true
		case oracle.KindReceived:
			sends++
		}
	}
	return effects, sends, nil
}
