// Package demo plays on loopback what keep-proxy is for. A bank commits and drops the connection, a script tries
// again, and the bank's own books tell.
//
// The bank and the quote API are servers of package fakes, over real TLS, and count for themselves. The proxy is a
// process of its own, so that it can be killed. The script knows nothing of keep-proxy. It is sh with curl where both
// are there, else a client built into the program. Everything is in a temporary folder, which is removed at the end.
//
// # Failure
//
// Run fails if the books don't show what each act promises, or if a command ends with another code. It fails too if
// an unknown outcome isn't settled in time. The bank, the proxy and the folder are gone at the end. If the demo is
// killed, the proxy ends and the folder stays.
package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"keep-proxy/internal/fakes"
	"keep-proxy/internal/fakes/testca"
)

//go:embed pay.sh
var payScript []byte

// ClientCommand is the hidden command by which the program runs Client.
const ClientCommand = "demo-client"

// UntilEOFFlag is the hidden flag of serve by which the demo's proxy ends with the
// demo, however that ends.
const UntilEOFFlag = "until-eof"

// Options are what Run needs; all but BuiltIn are required.
type Options struct {
	// Self is the program itself.
	Self string
	// Out gets the play.
	Out io.Writer
	// BuiltIn uses the built-in client even where sh and curl are there.
	BuiltIn bool
	// Stay, if not nil, is called after the last act with everything still running. It gets the demo's configuration
	// file and the bank's address.
	Stay func(ctx context.Context, configFile, bank string) error
}

// stage is what the acts have at hand.
type stage struct {
	o      Options
	dir    string
	config string
	bank   *fakes.Fake
	quotes *fakes.Fake
	caFile string
	script []string
	proxy  *proxy
}

// Run plays the demo. It leaves nothing behind, whether ctx ends or an act fails.
func Run(ctx context.Context, o Options) (err error) {
	s := &stage{o: o}
	defer func() { err = errors.Join(err, s.clear()) }()
	if err := s.build(); err != nil { //nolint:contextcheck // What it starts ends with clear.
		return err
	}
	began := time.Now()
	for _, act := range []func(context.Context) error{s.act1, s.act2, s.act3, s.act4} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	s.sayf("\nThe end, after %s.", time.Since(began).Round(100*time.Millisecond))
	if o.Stay == nil {
		return nil
	}
	return o.Stay(ctx, s.config, s.bank.URL())
}

// build starts the upstreams and writes what the proxy and the script need.
func (s *stage) build() error {
	var err error
	if s.dir, err = os.MkdirTemp("", "keep-proxy-demo-"); err != nil {
		return err
	}
	ca, err := testca.LoadOrCreate(s.dir)
	if err != nil {
		return err
	}
	s.caFile = filepath.Join(s.dir, testca.CertFile)
	s.bank, err = fakes.Start(fakes.Options{API: "bank", Log: filepath.Join(s.dir, "bank.log"), CA: ca})
	if err != nil {
		return err
	}
	s.quotes, err = fakes.Start(fakes.Options{API: "quotes", Log: filepath.Join(s.dir, "quotes.log"), CA: ca})
	if err != nil {
		return err
	}
	s.config = filepath.Join(s.dir, "config.yaml")
	if err := os.WriteFile(s.config, []byte(s.configuration()), 0o600); err != nil {
		return err
	}
	return s.writeScript()
}

// configuration is that of the demo's proxy. It looks up unknown outcomes at once instead of after 10 s.
func (s *stage) configuration() string {
	return fmt.Sprintf(`proxy:
  listen: ["127.0.0.1:0"]
  upstream_ca: %q
  egress: {allow: [127.0.0.1]}
admin: {listen: "127.0.0.1:0"}
ledger: {dir: %q, min_free: 1MiB}
connectors:
  settings:
    - connector: demo-bank
      hosts: [%q]
reconcile: {base: 200ms, cap: 1s}
log: {level: error}
`, s.caFile, s.data(), s.bank.Addr())
}

// data is the proxy's data folder.
func (s *stage) data() string { return filepath.Join(s.dir, "data") }

func (s *stage) writeScript() error {
	if s.o.BuiltIn || !installed("sh") || !installed("curl") {
		s.script = []string{s.o.Self, ClientCommand}
		return nil
	}
	name := filepath.Join(s.dir, "pay.sh")
	s.script = []string{"sh", name}
	return os.WriteFile(name, payScript, 0o600)
}

func installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// clear ends what runs and removes the folder.
func (s *stage) clear() error {
	var errs []error
	if s.proxy != nil {
		errs = append(errs, s.proxy.stop())
	}
	for _, f := range []*fakes.Fake{s.bank, s.quotes} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// sayf writes a line of the play; a reader that has gone doesn't end it.
func (s *stage) sayf(format string, args ...any) { _, _ = fmt.Fprintf(s.o.Out, format+"\n", args...) }

// books prints the bank's books, and holds the number of effects of an identity
// against what the act promises.
func (s *stage) books(identity string, want int) error {
	s.sayf("\nThe bank's own books:")
	for line := range strings.Lines(s.bank.Books()) {
		s.sayf("    %s", strings.TrimRight(line, "\n"))
	}
	tally, err := s.bank.Tally()
	if err != nil {
		return err
	}
	if got := tally.Effects(identity); got != want {
		return fmt.Errorf("the bank did %s %d times, and the act promises %d", identity, got, want)
	}
	s.sayf("%s: %s.", identity, [...]string{"never", "once", "twice"}[want])
	return nil
}
