package reconcilers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// ruleText is a connector of the API below; %s are its host, and the operation's
// own lines.
const ruleText = `apiVersion: keep/v1
connector: things
version: 1
title: Things
hosts: ["%s"]
reads: safe-methods
rate: {requests: 100000, per: 1s}
account: header[?'x-account'].orValue('')
operations:
  - name: thing.create
    match: {method: POST, path: /things}
    effect: mutation
    describe: "Thing {json.reference}"
    identity: {reference: json.reference}
    native_key: {header: Idempotency-Key, format: uuid, window: 24h}
    marker: {json: keep_id}
    manual_check: "Is there a thing with reference {json.reference}?"
%s`

// Strategies of the operation.
const (
	viaProbe  = probeText + "          absence_is_proof: true\n"
	viaResend = `    reconcile:
      - resend: {}
      - none: "a thing can't be read back"
`
	viaNone = `    reconcile:
      - none: "a thing can't be read back"
`
	viaBoth = `    reconcile:
      - resend: {}
` + probeItem + "          absence_is_proof: true\n"
	probeText = "    reconcile:\n" + probeItem
	probeItem = `      - probe:
          get: /things
          query: {reference: {cel: json.reference}}
          pages:
            more: response.json.next != ''
            set: {cursor: {cel: response.json.next}}
            max: 3
          candidates: response.json.items
          ours: found.keep_id == mutation.marker
          tie: marker
          id: found.id
          result: {status: 201, header: {content-type: application/json}, json: {cel: found}}
`
)

// tester is what a *testing.T and a *rapid.T have in common.
type tester interface {
	Helper()
	Context() context.Context
	Cleanup(f func())
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is one machine: a clock, a ledger and its process, an API, a Reconciler.
type world struct {
	tester
	clock *clock.Fake
	api   *api
	rule  string
	// away refuses connections to the API. A closed server's port may soon be another test's.
	away  atomic.Bool
	store *ledgertest.Memory
	// wrap, when not nil, stands between the Reconciler and the ledger.
	wrap func(Ledger) Ledger
	// content replaces that of a stored rule file, nil for as it is.
	content func([]byte) ([]byte, error)
	ledger  *ledger.Ledger
	r       *Reconciler
	creds   fixed
	log     bytes.Buffer
	tally   tally
	ids     atomic.Int64
	set     Settings
	// scripted are further fields of what the script sends.
	scripted http.Header
	// roots verify the API's certificate, if it has one.
	roots *x509.CertPool
	// make makes what the script asks for; nil means a thing of the API below.
	make func(reference string) *rules.Request
	// sentTo is the second address of what the script asks for, "" for its own.
	sentTo string
	// hosts are the user's settings at the claim; user are those of now.
	hosts []rules.Settings
	user  []rules.Settings
}

// leave makes the API unreachable for good.
func (w *world) leave() {
	w.away.Store(true)
	w.api.server.CloseClientConnections()
}

// tally is a Metrics that remembers.
type tally struct {
	unrecorded int
	mu         sync.Mutex
	tried      []string
	// working are the tries under way, most how many there were at once.
	working, most int
}

func (m *tally) Tried(connector, operation, strategy, seen string, _ time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tried = append(m.tried, strings.Join([]string{connector, operation, strategy, seen}, " "))
}

func (m *tally) Unrecorded(delta int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unrecorded += delta
}

func (m *tally) Working(delta int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.working += delta
	m.most = max(m.most, m.working)
}

// panicking is a Sender that breaks.
type panicking struct{}

func (panicking) Send(context.Context, *upstream.Request) *upstream.Answer {
	panic("Bearer sk_live_1234567890")
}

// newWorld makes a world whose operation has these lines.
func newWorld(t tester, operation string) *world {
	t.Helper()
	w := &world{
		tester: t, clock: clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		creds: fixed{header: "Authorization", value: "Bearer sk_live_1234567890"},
	}
	w.api = newAPI(t, w.clock)
	w.rule = fmt.Sprintf(ruleText, w.api.host(), operation)
	w.store = ledgertest.NewMemory(ledger.Process{ID: w.newID(), Started: w.now()})
	w.start()
	return w
}

// start makes what a process makes at its start.
func (w *world) start() {
	w.Helper()
	w.ledger = ledger.New(w.store, ledger.Config{Now: w.now, NewID: w.newID})
	if w.r != nil {
		w.r.Close()
	}
	var records Ledger = w.ledger
	if w.wrap != nil {
		records = w.wrap(records)
	}
	sender := upstream.New(upstream.Config{Clock: w.clock, Roots: w.roots, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if w.away.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}})
	r, err := New(Config{
		Ledger: records, Sender: sender, Credentials: &w.creds, Clock: w.clock, NewID: w.newID,
		Settings: w.set, Pinned: w.pinned(), Metrics: &w.tally, Random: func() float64 { return 0.5 }, Log: zerolog.New(zerolog.SyncWriter(&w.log)),
	})
	if err != nil {
		w.Fatal(err)
	}
	w.r = r
	w.Cleanup(func() {
		r.Close()
		sender.CloseIdle()
	})
}

// pinned loads stored versions under the user's settings, each once.
func (w *world) pinned() func(context.Context, string) (*rules.Connector, error) {
	var loaded sync.Map
	return func(ctx context.Context, hash string) (*rules.Connector, error) {
		if c, ok := loaded.Load(hash); ok {
			return c.(*rules.Connector), nil
		}
		content, err := w.ledger.Connector(ctx, hash)
		if err == nil && w.content != nil {
			content, err = w.content(content)
		}
		if err != nil {
			return nil, err
		}
		c, findings := rules.LoadPinned(content, w.user, rules.Defaults{})
		if c == nil {
			return nil, findings
		}
		loaded.Store(hash, c)
		return c, nil
	}
}

// restart loses the process and starts another on the same ledger.
func (w *world) restart() {
	w.Helper()
	w.store = w.store.Reopen(ledger.Process{ID: w.newID(), Started: w.now()})
	w.start()
	if _, err := w.r.Recover(w.Context()); err != nil {
		w.Fatal(err)
	}
}

func (w *world) now() ledger.Stamp { return ledger.Stamp(clock.Take(w.clock)) }
func (w *world) newID() string     { return fmt.Sprintf("id%d", w.ids.Add(1)) }

// request is what the script asked for.
func (w *world) request(reference string) *rules.Request {
	w.Helper()
	header := http.Header{"Content-Type": {"application/json"}, "X-Account": {"acct_1"}}
	maps.Copy(header, w.scripted)
	body := fmt.Appendf(nil, `{"reference":%q,"amount":12}`, reference)
	req, refusal := rules.Rebuild(http.MethodPost, "http://"+w.api.host()+"/things", header, body)
	if refusal != nil {
		w.Fatal(refusal)
	}
	return req
}

// claim puts a dispatch of the reference in flight, as the proxy would.
func (w *world) claim(reference string) *ledger.Mutation {
	w.Helper()
	set, findings := rules.Load([]rules.File{{Name: "things.yaml", Data: []byte(w.rule)}}, w.hosts, rules.Defaults{})
	if findings.Failed() {
		w.Fatalf("the rule does not load:\n%s", findings.Error())
	}
	asked := w.request
	if w.make != nil {
		asked = w.make
	}
	req := asked(reference)
	match := set.Match(req)
	if match.Refusal != nil || match.Operation == nil {
		w.Fatalf("the request does not match: %v", match.Refusal)
	}
	if c := match.Connector; c.AccountRead != nil {
		req = req.WithAccount(c, "acct_1")
		match = set.Match(req)
	}
	derived, refusal := match.Operation.Derive(req, match)
	if refusal != nil {
		w.Fatal(refusal)
	}
	asking := claimOf(w, w.newID(), req, match, derived)
	asking.SentTo = w.sentTo
	out, err := w.ledger.Claim(w.Context(), asking)
	if err != nil || out.Decision != ledger.DecideDispatch {
		w.Fatalf("claim: %q %s %s, %v", out.Decision, out.Problem, out.Detail, err)
	}
	return out.Mutation
}

// claimOf makes the claim of a request.
func claimOf(t tester, id string, req *rules.Request, match rules.Match, d *rules.Derived) ledger.Claim {
	t.Helper()
	return claimIn(t, "payouts", id, req, match, d)
}

// claimIn makes the claim of a request in a workflow.
func claimIn(t tester, workflow, id string, req *rules.Request, match rules.Match, d *rules.Derived) ledger.Claim {
	t.Helper()
	scope := ledger.Scope{Workflow: workflow, Item: "item-" + d.Target, Attempt: 1}
	identity := map[string]string{}
	for name, value := range d.Identity {
		identity[name] = string(value)
	}
	op, c := match.Operation, match.Connector
	key, err := ledger.MutationKey(ledger.KeyParts{
		Workflow: scope.Workflow, Item: scope.Item, Attempt: 1, Connector: c.Name, Operation: op.Name,
		Account: d.Account, HostGroup: d.HostGroup, HostVars: d.HostVars, Identity: identity, Subkey: d.Subkey,
	})
	if err != nil {
		t.Fatal(err)
	}
	policy := ledger.Policy{
		Reconciler: op.Reconciles(), BlockScope: ledger.BlockMutation, OnAbsent: ledger.OnAbsent(op.OnAbsent),
		Settle: op.Settle, Confirmations: op.Confirmations, Spacing: op.Spacing, ResultLimit: op.MaxBody,
		MaxDispatches: op.MaxDispatches,
	}
	if w := op.Watch; w != nil {
		policy.WatchEvery, policy.WatchMax, policy.WatchClass = w.Every, w.Max, w.Class
	}
	if op.NativeKey != nil {
		policy.NativeKey, policy.KeyFormat, policy.KeyWindow = true, op.NativeKey.Format, op.NativeKey.Window
	}
	for _, s := range op.Strategies {
		policy.Resend = policy.Resend || s.Kind == rules.StrategyResend
		policy.Natural = policy.Natural || s.Natural
	}
	stored := op.Redact(req)
	sum := sha256.Sum256(req.Body())
	return ledger.Claim{
		Scope: scope, Key: key, DispatchID: id, Body: req.Body(), Connector: c.Content,
		Record: ledger.Mutation{
			Intent: ledger.Intent{
				Connector: c.Name, ConnectorVersion: c.Version, ConnectorHash: c.Hash, Operation: op.Name, Target: d.Target,
				Account: d.Account, HostGroup: d.HostGroup, Identity: identity, Scope: scope,
			},
			Payload: ledger.Payload{
				Policy:        policy,
				PayloadDigest: d.PayloadDigest, SignificantDigest: d.SignificantDigest, Unmarked: op.Unmarked(req),
				Request: ledger.Request{
					Method: stored.Method, URL: stored.URL(), Header: ledger.Header(stored.Header),
					Body: ledger.Body{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(req.Body()))},
				},
			},
		},
	}
}

// uncertain ends the current dispatch without an outcome. Pending, the record stays
// in flight for the inline try; else the runner has it.
func (w *world) uncertain(m *ledger.Mutation, pending bool) *ledger.Mutation {
	w.Helper()
	d := *m.Current()
	d.Verdict, d.Ended, d.Reason, d.BytesWritten = ledger.VerdictUncertain, w.now(), "the connection was lost", 200
	out, err := w.ledger.EndDispatch(w.Context(), ledger.EndDispatch{Key: m.Key, Dispatch: d, Inline: pending, NextTryAt: w.r.NextTry(m)})
	if err != nil {
		w.Fatal(err)
	}
	return out.Mutation
}

// unknown claims a reference and loses the answer.
func (w *world) unknown(reference string) *ledger.Mutation {
	w.Helper()
	return w.uncertain(w.claim(reference), false)
}

// read returns the record as it is.
func (w *world) read(m *ledger.Mutation) *ledger.Mutation {
	w.Helper()
	var now *ledger.Mutation
	if err := w.store.View(w.Context(), func(v ledger.View) (err error) {
		now, err = v.Mutation(m.Key)
		return err
	}); err != nil {
		w.Fatal(err)
	}
	return now
}

// after lets time pass and runs the runner once.
func (w *world) after(d time.Duration) Counts {
	w.Helper()
	w.clock.Advance(d)
	return w.r.RunOnce(w.Context())
}

// due lets time pass until the record is due and runs the runner once; it returns
// how long that took.
func (w *world) due(m *ledger.Mutation) time.Duration {
	w.Helper()
	wait := w.read(m).NextTryAt.Sub(w.clock.Now())
	w.after(max(wait, 0))
	return wait
}

// wants fails unless the record is in this state, for a reason that holds this text.
func (w *world) wants(m *ledger.Mutation, state ledger.State, reason string) *ledger.Mutation {
	w.Helper()
	now := w.read(m)
	if now.State != state {
		w.Fatalf("state %s (%s), want %s; last seen %+v", now.State, now.Reason, state, last(now))
	}
	if said := last(now); reason != "" && !strings.Contains(said.Reason+now.Reason, reason) {
		w.Errorf("reason %q, %q; want %q in one of them", said.Reason, now.Reason, reason)
	}
	return now
}

// last is the record's newest observation.
func last(m *ledger.Mutation) ledger.Observation {
	if len(m.Observations) == 0 {
		return ledger.Observation{}
	}
	return m.Observations[len(m.Observations)-1]
}

// resultOf is the text of the stored result.
func (w *world) resultOf(m *ledger.Mutation) string {
	w.Helper()
	if m.Result == nil {
		return ""
	}
	body, err := w.ledger.Body(w.Context(), m.Result.Body)
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	var b bytes.Buffer
	if _, err := b.ReadFrom(body); err != nil {
		w.Fatal(err)
	}
	return b.String()
}

// inline makes the inline try.
func (w *world) inline(m *ledger.Mutation) *ledger.Mutation {
	w.Helper()
	now, err := w.r.Inline(context.WithoutCancel(w.Context()), m)
	if err != nil {
		w.Fatal(err)
	}
	return now
}
