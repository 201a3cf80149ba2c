package trials

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"go.yaml.in/yaml/v4"

	"keep-proxy/admin/client"
	"keep-proxy/app"
	"keep-proxy/config"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/fakes/data"
	"keep-proxy/internal/fakes/testca"
	"keep-proxy/rules"
)

// Options say what is tried. Connector and Fake are required.
type Options struct {
	// Connector is the file that Name names. It is nil if Name is a bundled connector.
	Connector []byte
	Name      string
	// Fake is the file of the fake.
	Fake []byte
	// Operations are those that are tried; none means all.
	Operations []string
	// Each, if not nil, gets each operation as soon as it was tried.
	Each func(Row)
	// Version is the program's.
	Version string
	// Log gets what the program logs.
	Log zerolog.Logger

	// only names the trials to make, in tests; none means all. edit changes what the script sends for the nth time.
	// patience bounds one trial.
	only     []string
	edit     func(nth int, r rules.Raw) rules.Raw
	patience time.Duration
}

// began is when the trials begin, whatever the day is: what they come to doesn't depend on it. Their clock moves only when
// it is told to.
var began = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// ownFile is the copy of a connector that isn't bundled.
const ownFile = "connector.yaml"

// bench is the program with one connector.
type bench struct {
	o         Options
	dir       string
	ca        *testca.CA
	fake      *data.Fake
	clock     *clock.Fake
	app       *app.App
	api       *client.Client
	connector *rules.Connector
	samples   []rules.Sample
	others    []*rules.Operation
	hosts     []string
	// upstream is the address of the fake of now.
	upstream atomic.Pointer[string]
	down     atomic.Bool // nobody answers there
	number   int         // of all trials
	tries    int         // of those with this program
	doubtful bool        // what was found in a trial belongs to another mutation
	stuck    bool        // a trial took too long
}

// Run tries every mutating operation of the connector.
func Run(ctx context.Context, o Options) (report Report, err error) {
	b := &bench{o: o, clock: clock.NewFake(began)}
	defer func() { err = errors.Join(err, b.stop()) }() //nolint:contextcheck // What was started ends, also when ctx has ended.
	if b.fake, err = data.Load(o.Fake); err != nil {
		return Report{}, err
	}
	if err := b.start(ctx); err != nil {
		return Report{}, err
	}
	report = Report{Connector: b.connector.Name, Title: b.connector.Title, Fake: b.fake.Name(), Rows: []Row{}}
	add := func(row Row) {
		if report.Rows = append(report.Rows, row); o.Each != nil {
			o.Each(row)
		}
	}
	for _, s := range b.samples {
		if u, err := url.ParseRequestURI(s.Request.Target); err != nil || !b.fake.Changes(s.Request.Method, u.Path) {
			b.others = append(b.others, s.Operation)
			continue
		}
		row := Row{Operation: s.Operation.Name, Case: s.Case, ManualCheck: s.ManualCheck}
		for _, one := range append(Kinds(), errorKinds(b.fake, s.Operation.Name)...) {
			if len(o.only) > 0 && !slices.Contains(o.only, one.Name) {
				continue
			}
			cell, err := b.try(ctx, one, s)
			if err != nil {
				return report, fmt.Errorf("%s, %s: %w", row.Operation, one.Name, err)
			}
			row.Cells = append(row.Cells, cell)
		}
		add(row)
	}
	for _, op := range b.others {
		add(Row{Operation: op.Name, Cells: []Cell{}})
	}
	return report, nil
}

// choose leaves the operations that were asked for.
func (b *bench) choose() error {
	if len(b.o.Operations) == 0 {
		return nil
	}
	left := slices.Clone(b.o.Operations)
	other := func(op *rules.Operation) bool {
		left = slices.DeleteFunc(left, func(name string) bool { return name == op.Name })
		return !slices.Contains(b.o.Operations, op.Name)
	}
	b.samples = slices.DeleteFunc(b.samples, func(s rules.Sample) bool { return other(s.Operation) })
	b.others = slices.DeleteFunc(b.others, other)
	if len(left) > 0 {
		return fmt.Errorf("the connector %s has no mutating operation %s", b.connector.Name, strings.Join(left, ", "))
	}
	return nil
}

// start starts the program, with a new folder.
func (b *bench) start(ctx context.Context) error {
	var err error
	b.tries = 0
	if b.dir, err = os.MkdirTemp("", "keep-proxy-trials-"); err != nil {
		return err
	}
	if b.ca, err = testca.LoadOrCreate(b.dir); err != nil {
		return err
	}
	c, err := b.configuration()
	if err != nil {
		return err
	}
	if b.connector == nil {
		if err := b.load(c); err != nil {
			return err
		}
	}
	b.app, err = app.New(ctx, app.Options{
		Config: c, Log: b.o.Log, Clock: b.clock, Version: b.o.Version, Note: func(string) {}, Trial: &app.Trial{Dial: b.dial},
	})
	if err != nil {
		return err
	}
	if err := b.app.Start(ctx); err != nil {
		b.app = nil
		return err
	}
	token, err := os.ReadFile(c.Admin.TokenFile)
	if err != nil {
		return err
	}
	b.api, err = client.New(client.Config{URL: b.app.AdminURL(), Token: string(token)})
	return err
}

// configuration has the connector alone, with what its fake says that it needs.
func (b *bench) configuration() (config.Config, error) {
	connectors := map[string]any{"bundled": []string{b.o.Name}}
	name := b.o.Name
	if b.o.Connector != nil {
		var named struct {
			Connector string `yaml:"connector"`
		}
		if err := yaml.Load(b.o.Connector, &named); err != nil {
			return config.Config{}, fmt.Errorf("connector: %w", err)
		}
		name = named.Connector
		dir := filepath.Join(b.dir, "connectors")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, ownFile), b.o.Connector, 0o600)); err != nil {
			return config.Config{}, err
		}
		connectors = map[string]any{"bundled": []string{}, "dirs": []string{dir}}
	}
	if settings := maps.Clone(b.fake.Configure()); settings != nil {
		settings["connector"] = name
		connectors["settings"] = []any{settings}
	}
	text, err := yaml.Dump(map[string]any{
		"proxy": map[string]any{
			"listen": []string{"127.0.0.1:0"}, "upstream_ca": filepath.Join(b.dir, testca.CertFile), "hold": "0s",
			"timeouts": map[string]any{"total": "30s", "response": "20s", "dial": "30s"},
		},
		"admin":  map[string]any{"listen": "127.0.0.1:0"},
		"ledger": map[string]any{"dir": filepath.Join(b.dir, "data"), "min_free": "1MiB"},
		"runs":   map[string]any{"ttl": "8760h"},
		// What is asked in vain is given up after a day and a half: later than any window of a key that vendors publish.
		"reconcile":  map[string]any{"inline": "1m", "base": "1m", "cap": "3h", "jitter": 0, "max_attempts": 4, "max_age": "36h"},
		"connectors": connectors,
	})
	if err != nil {
		return config.Config{}, err
	}
	file := filepath.Join(b.dir, "config.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return config.Config{}, err
	}
	return config.Load(config.Options{File: file})
}

// load finds the connector and its samples.
func (b *bench) load(c config.Config) error {
	set, findings, err := app.LoadRules(c, false)
	if err != nil {
		return err
	}
	for i, f := range findings {
		if filepath.Base(f.File) == ownFile {
			findings[i].File = b.o.Name
		}
	}
	if set == nil {
		return fmt.Errorf("the connector doesn't load\n%w", findings)
	}
	for _, one := range set.Connectors() {
		b.connector = one
	}
	b.samples, b.others = b.connector.Samples()
	b.hosts = append(b.hosts, b.connector.Hosts...)
	for _, s := range b.samples {
		u, err := url.Parse("//" + s.Request.Authority)
		if err != nil {
			return err
		}
		b.hosts = append(b.hosts, u.Hostname())
	}
	for i, host := range b.hosts {
		b.hosts[i] = strings.Split(host, ":")[0]
	}
	return b.choose()
}

// dial connects to the fake of now, whatever the address.
func (b *bench) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	to := b.upstream.Load()
	if to == nil || b.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return (&net.Dialer{}).DialContext(ctx, network, *to)
}

// stop ends the program and removes its folder.
func (b *bench) stop() error {
	var errs []error
	if b.api != nil {
		b.api.Close()
	}
	if b.app != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		errs = append(errs, b.app.Stop(ctx))
	}
	b.api, b.app = nil, nil
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}
