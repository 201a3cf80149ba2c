package trials

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
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
	"keep-proxy/internal/fakes/data"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fakes/server"
	"keep-proxy/rules"
)

const (
	// patience bounds what the program takes for one step. Only what is broken takes so long.
	patience  = 20 * time.Second
	pollEvery = 10 * time.Millisecond
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
	ids       map[string]string // of records, by items
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
	return fmt.Sprintf("%d %s %s", r.status, r.header.Get("Keep-State"), bytes.TrimSpace(r.body[:min(len(r.body), 200)]))
}

// try makes one trial. Where what was found belongs to another mutation, it may be an earlier trial's, whose object had
// the same id. Then the trial is made once more, with a program that knows of none.
func (b *bench) try(ctx context.Context, one Kind, s rules.Sample) (Cell, error) {
	b.doubtful = false
	cell, err := b.once(ctx, one, s)
	if err != nil || !b.doubtful || b.tries == 1 {
		return cell, err
	}
	if err := errors.Join(b.stop(), b.start(ctx)); err != nil { //nolint:contextcheck // It stops also when ctx has ended.
		return Cell{}, err
	}
	return b.once(ctx, one, s)
}

// once makes one trial, with a fake of its own.
func (b *bench) once(ctx context.Context, one Kind, s rules.Sample) (cell Cell, err error) {
	b.clock.align()
	b.number++
	b.tries++
	t := &trial{bench: b, ctx: ctx, sample: s, api: b.api, workflow: fmt.Sprintf("trial-%d", b.number), ids: map[string]string{}}
	if err := t.serve(); err != nil { //nolint:contextcheck // What it starts ends with the trial.
		return Cell{}, err
	}
	defer func() { err = errors.Join(err, t.end()) }()
	cell, seen := one.run(t)
	if seen != nil {
		cell = Cell{Outcome: Failed, Said: seen.Error()}
	}
	cell.Trial = one.Name
	return cell, nil
}

// serve starts the fake.
func (t *trial) serve() error {
	var err error
	t.fake = t.bench.fake.Fresh(t.number * 1000)
	cfg := server.Config{API: t.fake, Now: t.clock.Now}
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
	for _, item := range []string{"a", "b"} {
		if m, err := t.mutation(item); err == nil && m != nil && unresolved(m) {
			over := wire.Resolve{Action: wire.ActionSkip, Reason: "the trial is over", Actor: "trials", Version: m.Version, Force: true}
			_, _ = t.api.Resolve(t.ctx, m.ID, over)
		}
	}
	t.upstream.Store(nil)
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
func (t *trial) send(item string, request rules.Raw) reply {
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
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, Time: t.clock.Now},
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
	answer, err := (&http.Client{Transport: transport, Timeout: patience, CheckRedirect: here}).Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = answer.Body.Close() }()
	if id := answer.Header.Get("Keep-Mutation"); id != "" {
		t.ids[item] = id
	}
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

// mutation is the record of an item, nil for none. What takes its effect back isn't meant.
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
			return nil, nil
		}
	}
	return t.api.Mutation(t.ctx, t.ids[item])
}

// await waits until the record is another than m, or decided.
func (t *trial) await(item string, m *wire.Mutation) error {
	late := time.Now().Add(patience)
	for time.Now().Before(late) {
		now, err := t.mutation(item)
		if err != nil {
			return err
		}
		if now.Version != m.Version || !asking(now) {
			return nil
		}
		select {
		case <-t.ctx.Done():
			return t.ctx.Err()
		case <-time.After(pollEvery):
		}
	}
	return fmt.Errorf("the program doesn't go on with %s, which is %s: %s", m.ID, m.State, m.Reason)
}

// pass lets time pass. What is due meanwhile is done at its time.
func (t *trial) pass(item string, d time.Duration) error {
	until := t.clock.Now().Add(d)
	for range rounds {
		m, err := t.mutation(item)
		if err != nil {
			return err
		}
		if m == nil || !asking(m) || m.NextTryAt.After(until) {
			break
		}
		if err := t.look(item, m); err != nil {
			return err
		}
	}
	t.clock.advance(until.Sub(t.clock.Now()))
	t.app.Kick()
	return nil
}

// look moves the clock on to the record's next try, and waits until that was made.
func (t *trial) look(item string, m *wire.Mutation) error {
	t.clock.advance(m.NextTryAt.Sub(t.clock.Now()) + time.Millisecond)
	t.app.Kick()
	return t.await(item, m)
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
