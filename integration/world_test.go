package integration

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/app"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/fakes"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fakes/testca"
)

// patience bounds every wait of these tests. It is reached only by what is broken.
const patience = 2 * time.Minute

// world is the program between scripts and upstreams that count for themselves.
type world struct {
	t        testing.TB
	settings settings
	file     string
	// keyed honours an idempotency key, probed knows none; both can be asked. hooks
	// can't.
	keyed, probed, hooks *upstream
	// mail is sent to in two steps.
	mail *upstream
	// quotes can only be read, and no connector covers it.
	quotes *upstream
	// stripe and github are there in a world of vendors only.
	stripe, github *upstream
	ca             *testca.CA
	// others are clients that go past the proxy.
	others *http.Client
	clock  clock.Clock
	output *buffer
	// started are all upstreams, by their connectors.
	started map[string]*upstream
	// intended is how often an upstream was told to book what it is sent once; sure says
	// that none will book anything more of what was sent before.
	intended map[string]int
	sure     bool
	// environment is added to that of a program that is spawned.
	environment []string

	app   *app.App
	child *child
	api   *client.Client
	// admin is the address of the API.
	admin string
}

// upstreams are those that count effects of every world.
func (w *world) upstreams() []*upstream { return []*upstream{w.keyed, w.probed, w.hooks, w.mail} }

// upstream is a fake, with its counts.
type upstream struct {
	*fakes.Fake
	t   testing.TB
	log string
}

// prepare makes the upstreams and the configuration; nothing is started.
func prepare(tb testing.TB, edits ...func(*settings)) *world {
	tb.Helper()
	w := &world{t: tb, settings: defaults(), output: &buffer{}, started: map[string]*upstream{}}
	for _, edit := range edits {
		edit(&w.settings)
	}
	w.settings.Dir = tb.TempDir()
	ca, err := testca.New()
	if err != nil {
		tb.Fatal(err)
	}
	w.ca = ca
	direct := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12}}
	w.others = &http.Client{Transport: direct}
	tb.Cleanup(direct.CloseIdleConnections)
	w.settings.UpstreamCA = filepath.Join(w.settings.Dir, "upstreams.pem")
	if err := os.WriteFile(w.settings.UpstreamCA, ca.PEM(), 0o600); err != nil {
		tb.Fatal(err)
	}
	if w.settings.Connectors, err = filepath.Abs("testdata/connectors"); err != nil {
		tb.Fatal(err)
	}
	w.settings.Hosts = map[string]string{}
	w.keyed = w.fake("keyed-bank", "bank", "")
	w.probed = w.fake("probed-bank", "bank", `{"native_keys": false}`)
	w.hooks = w.fake("hooks", "webhook", "")
	w.mail = w.fake("mail", "mail", "")
	w.quotes = w.fake("quotes", "quotes", "")
	delete(w.settings.Hosts, "quotes")
	if w.settings.Vendors {
		w.stripe = w.fake("stripe", "stripe", "")
		w.github = w.fake("github", "github", "")
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the program's log:\n%s", w.output)
		}
	})
	return w
}

// usualRing is the length of a log, in bytes, that a start reads soon. A command takes up to a sixteenth of it, the largest
// bundled connector too.
const usualRing = 8 << 20

// newWorld prepares a world and starts the program in this process.
func newWorld(tb testing.TB, edits ...func(*settings)) *world {
	tb.Helper()
	w := prepare(tb, edits...)
	w.ringOf(usualRing)
	w.start()
	return w
}

// fake starts a fake and gives its address to a connector. The certificate is for
// 0.0.0.0 as well: some clients never send a loopback address to a proxy.
func (w *world) fake(connector, api, adjust string) *upstream {
	w.t.Helper()
	o := fakes.Options{
		API: api, Log: filepath.Join(w.settings.Dir, connector+".log"), CA: w.ca, Hosts: []string{"0.0.0.0"},
		NoHTTP2: w.settings.HTTP1,
	}
	if adjust != "" {
		o.Settings = []byte(adjust)
	}
	fake, err := fakes.Start(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := fake.Close(); err != nil {
			w.t.Errorf("%s: %v", connector, err)
		}
	})
	w.settings.Hosts[connector] = fake.Addr()
	w.started[connector] = &upstream{Fake: fake, t: w.t, log: o.Log}
	return w.started[connector]
}

// start runs the program in this process.
func (w *world) start() {
	w.t.Helper()
	if err := w.tryStart(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tryStart() error {
	w.t.Helper()
	w.file = w.settings.write(w.t)
	c := loadConfig(w.t, w.file)
	log := zerolog.New(w.output).With().Timestamp().Logger()
	a, err := app.New(context.Background(), app.Options{Config: c, Log: log, Version: "test", Clock: w.clock})
	if err != nil {
		return err
	}
	if err := a.Start(context.Background()); err != nil {
		return err
	}
	w.app = a
	w.t.Cleanup(w.stop)
	w.connect(a.AdminURL(), c.Admin.TokenFile)
	return nil
}

func (w *world) connect(url, tokenFile string) {
	w.t.Helper()
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		w.t.Fatal(err)
	}
	w.admin = url
	if w.api, err = client.New(client.Config{URL: url, Token: string(token)}); err != nil {
		w.t.Fatal(err)
	}
}

// stop ends the program in order; it may be called again.
func (w *world) stop() {
	w.t.Helper()
	if w.app == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.app.Stop(ctx); err != nil {
		w.t.Errorf("stop: %v", err)
	}
	w.api.Close()
	w.app = nil
}

// restart stops the program and starts it again on the same ledger.
func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.start()
}

// arm gives an upstream the named fault for the next mutation.
func (u *upstream) arm(name string) {
	u.t.Helper()
	if err := u.ArmNamed(name); err != nil {
		u.t.Fatal(err)
	}
}

func (u *upstream) armFault(f script.Fault) {
	u.t.Helper()
	if err := u.Arm(f); err != nil {
		u.t.Fatal(err)
	}
}

func (u *upstream) tally() oracle.Tally {
	u.t.Helper()
	tally, err := u.Tally()
	if err != nil {
		u.t.Fatal(err)
	}
	return tally
}

// want holds an identity's effects and sends against the upstream's own log.
func (u *upstream) want(identity string, effects, sends int) {
	u.t.Helper()
	tally := u.tally()
	if got := tally.Effects(identity); got != effects {
		u.t.Errorf("%s took effect %d times, want %d", identity, got, effects)
	}
	if got := tally.Sends(identity); got != sends {
		u.t.Errorf("%s was sent %d times, want %d", identity, got, sends)
	}
}

// await waits for the upstream's log to say something.
func (u *upstream) await(what string, enough func(oracle.Tally) bool) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := oracle.Wait(ctx, u.log, enough); err != nil {
		u.t.Fatalf("waiting until %s: %v", what, err)
	}
}

// received is true once so many requests for the identity were read.
func received(identity string, n int) func(oracle.Tally) bool {
	return func(t oracle.Tally) bool { return t.Sends(identity) >= n }
}

// poll asks again and again until done says so.
func (w *world) poll(what string, done func() bool) {
	w.t.Helper()
	late := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-late:
			w.t.Fatalf("waiting until %s: it never was", what)
		case <-tick.C:
		}
	}
}

// mutations lists every record, newest first.
func (w *world) mutations(f client.Filter) []wire.Mutation {
	w.t.Helper()
	var all []wire.Mutation
	for {
		page, err := w.api.Mutations(w.t.Context(), f)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all
		}
		f.Cursor = page.Next
	}
}

// mutationsOf lists the records of an item.
func (w *world) mutationsOf(item string) []wire.Mutation {
	w.t.Helper()
	return w.mutations(client.Filter{Item: item})
}

// mutation shows the one record of an item.
func (w *world) mutation(item string) *wire.Mutation {
	w.t.Helper()
	all := w.mutationsOf(item)
	if len(all) != 1 {
		w.t.Fatalf("item %s has %d mutations, want 1", item, len(all))
	}
	return w.show(all[0].ID)
}

func (w *world) show(id string) *wire.Mutation {
	w.t.Helper()
	m, err := w.api.Mutation(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// awaitState waits for the one record of an item to come to a state.
func (w *world) awaitState(item, state string) *wire.Mutation {
	w.t.Helper()
	var m *wire.Mutation
	w.poll("the mutation of item "+item+" is "+state, func() bool {
		m = w.mutation(item)
		return m.State == state
	})
	return m
}

// resolve records a person's decision on the version that they saw.
func (w *world) resolve(m *wire.Mutation, r wire.Resolve) *wire.Mutation {
	w.t.Helper()
	after, err := w.tryResolve(m, r)
	if err != nil {
		w.t.Fatalf("%s of %s in %s: %v", r.Action, m.ID, m.State, err)
	}
	return after
}

func (w *world) tryResolve(m *wire.Mutation, r wire.Resolve) (*wire.Mutation, error) {
	r.Actor, r.Reason, r.Version = "ann", "looked it up", m.Version
	return w.api.Resolve(w.t.Context(), m.ID, r)
}

// wantProblem holds an error of the API against its name and status.
func wantProblem(tb testing.TB, err error, name string, status int) *wire.Problem {
	tb.Helper()
	p, ok := errors.AsType[*wire.Problem](err)
	if !ok {
		tb.Fatalf("got %v, want the problem %s", err, name)
	}
	if p.Name() != name || p.Status != status {
		tb.Errorf("got %d %s (%s), want %d %s", p.Status, p.Name(), p.Detail, status, name)
	}
	return p
}

// buffer collects the program's log.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
