package integration

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// loadVar names a target: this binary is then its clients, as a command of run. directVar says that they know no proxy.
const (
	loadVar   = "KEEP_INTEGRATION_LOAD"
	directVar = "KEEP_INTEGRATION_DIRECT"
)

// load reads how many clients ask, and for how long, and says how often they were answered.
func load(target string) int {
	if err := answerLoads(target); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func answerLoads(target string) error {
	proxy := os.Getenv("HTTPS_PROXY")
	if os.Getenv(directVar) != "" {
		proxy = ""
	}
	roots, err := os.ReadFile(os.Getenv("SSL_CERT_FILE"))
	if err != nil {
		return err
	}
	y, err := newWay(proxy, string(roots))
	if err != nil {
		return err
	}
	y = y.of("load", "GET", fixed("/read"), nil)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var clients int
		var length string
		if _, err := fmt.Sscan(in.Text(), &clients, &length); err != nil {
			return err
		}
		d, err := time.ParseDuration(length)
		if err != nil {
			return err
		}
		for len(y.callers) < clients {
			k, err := call(y, target)
			if err != nil {
				return err
			}
			y.callers = append(y.callers, k)
		}
		n, err := y.askFor(d)
		if err != nil {
			return err
		}
		fmt.Println(n)
	}
	return nil
}

// askFor lets all clients ask for a while.
func (y *way) askFor(d time.Duration) (int64, error) {
	var done, unique atomic.Int64
	var all sync.WaitGroup
	failed := make(chan error, len(y.callers))
	begun := time.Now()
	for _, k := range y.callers {
		all.Go(func() {
			for time.Since(begun) < d {
				if err := k.ask(&unique); err != nil {
					failed <- err
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	close(failed)
	return done.Load(), <-failed
}

// under is the way of a command that run starts with these flags.
func (l *lab) under(name, config string, flags ...string) *way {
	l.t.Helper()
	argv := append([]string{"run", "--config", config, "--workflow", "bench", "--item", name}, flags...)
	argv = append(argv, "--", "env", loadVar+"="+l.target) // run takes no variables of such a name itself.
	if name == "transparent" {
		argv = append(argv, directVar+"=1")
	}
	cmd := exec.Command("../bin/keep-proxy", append(argv, os.Args[0], "-test.run=^$")...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	out := bufio.NewReader(stdout)
	return &way{name: name, elsewhere: func(clients int, d time.Duration) (n int64, err error) {
		if _, err = fmt.Fprintln(in, clients, d); err == nil {
			_, err = fmt.Fscanln(out, &n)
		}
		return n, err
	}}
}

// alike is another configuration for the same work, with a ledger of its own.
func (l *lab) alike(name string) string {
	l.t.Helper()
	text, err := os.ReadFile(l.file)
	if err != nil {
		l.t.Fatal(err)
	}
	file := filepath.Join(l.settings.Dir, name+".yaml")
	state := filepath.Join(l.settings.Dir, "state")
	text = []byte(strings.ReplaceAll(string(text), state, state+"-"+name))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		l.t.Fatal(err)
	}
	return file
}

// isolated compares commands that have a network of their own with those that go by the variables. Where the proxy is
// embedded, each command has its own.
func (s *sheet) isolated(t *testing.T) {
	l := newLab(t, kilobytes)
	if _, err := l.begin("--isolate"); err != nil {
		s.without("run --isolate", err)
		return
	}
	var plain, more []float64
	for range 3 * *turns {
		without, err := l.begin()
		with, err2 := l.begin("--isolate")
		if err = errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		plain, more = append(plain, without), append(more, with-without)
	}
	s.row("run --isolate -- true beyond run -- true", more, ": beyond "+figure(median(plain))+" ms")
	for _, which := range []string{"embedded", "running"} {
		config := func(name string) string {
			if which == "running" {
				return l.file
			}
			return l.alike(name)
		}
		by := l.under("variables", config("variables"))
		proxy := l.under("isolated", config("isolated"), "--isolate")
		transparent := l.under("transparent", config("transparent"), "--isolate=transparent")
		l.interleave([]*way{by, proxy, transparent}, 16, *turns, *sliceFor, func() {})
		for _, y := range []*way{proxy, transparent} {
			s.row("time of a read, "+y.name+", against the proxy variable: "+which+" proxy", shares(by.rates, y.rates),
				": "+figure(median(y.rates))+" against "+figure(median(by.rates))+" a second")
		}
	}
}

// begin runs a command that does nothing with a proxy of its own, and returns how long that took, in ms.
func (l *lab) begin(flags ...string) (float64, error) {
	argv := append([]string{"run", "--config", l.alike("nothing"), "--workflow", "bench", "--once"}, flags...)
	begun := time.Now()
	out, err := exec.Command("../bin/keep-proxy", append(argv, "--", "true")...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return float64(time.Since(begun).Microseconds()) / 1e3, err
}
