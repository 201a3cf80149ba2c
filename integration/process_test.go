package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/app"
	"keep-proxy/config"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/fault"
	"keep-proxy/ledger/badgerstore"
)

// serveVar names a configuration file: this binary is then the program.
const serveVar = "KEEP_INTEGRATION_SERVE"

// countVar names a file into which the program then writes, when it has ended in order, how
// often it came to each crash point.
const countVar = "KEEP_INTEGRATION_COUNT"

// restoredVar is the moment of the backup that the program's ledger is, as serve --restored takes it.
const restoredVar = "KEEP_INTEGRATION_RESTORED"

// passing runs the program and writes down the crash points if that is asked for.
func passing(run func() error) error {
	file := os.Getenv(countVar)
	if file == "" {
		return run()
	}
	var mu sync.Mutex
	passed := map[string]int{}
	stop := fault.Watch(func(s fault.Step) {
		if s.Op == fault.OpPoint {
			mu.Lock()
			defer mu.Unlock()
			passed[s.Name]++
		}
	})
	err := run()
	stop()
	mu.Lock()
	defer mu.Unlock()
	text, encodeErr := json.Marshal(passed)
	return errors.Join(err, encodeErr, os.WriteFile(file, text, 0o600))
}

// announcement is what the program prints once it listens.
type announcement struct {
	Admin     string `json:"admin"`
	TokenFile string `json:"token_file"`
	// Proxy and CAPEM are those of a bare goproxy.
	Proxy string `json:"proxy"`
	CAPEM string `json:"ca_pem"`
}

// serve runs the program until its standard input ends, so that it never outlives
// its test. It returns an exit code.
func serve(file string) int {
	if err := passing(func() error { return serveFile(file) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveFile(file string) error {
	if err := errors.Join(fault.ArmFromEnv(), watch()); err != nil {
		return err
	}
	c, err := config.Load(config.Options{File: file})
	if err != nil {
		return err
	}
	o := app.Options{Config: c, Log: zerolog.New(os.Stderr).Level(zerolog.InfoLevel), Version: "test", Operator: "ann"}
	if since := os.Getenv(restoredVar); since != "" {
		if o.Restored, err = time.Parse(time.RFC3339, since); err != nil {
			return err
		}
	}
	ctx := context.Background()
	app.TuneMemory(ctx)
	a, err := app.New(ctx, o)
	if err != nil {
		return err
	}
	if err := a.Start(ctx); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(announcement{Admin: a.AdminURL(), TokenFile: c.Admin.TokenFile}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return a.Stop(ctx)
}

// child is the program as a process.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	// gone is closed once the process has ended; err says how.
	gone chan struct{}
	err  error
}

// errDied is that the program ended before it listened.
var errDied = errors.New("the program ended before it listened")

// spawn starts the program as a process of its own; points is what is armed in it,
// "" for nothing.
func (w *world) spawn(points string) error {
	w.t.Helper()
	return w.spawnWith(func(*child) {}, points)
}

// spawnWith is spawn that shows the process as soon as it runs.
func (w *world) spawnWith(running func(*child), points string) error {
	w.t.Helper()
	w.file = w.settings.write(w.t)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), serveVar+"="+w.file, fault.EnvVar+"="+points), w.environment...)
	if w.output != nil {
		cmd.Stderr = w.output
	}
	c, at, err := begin(cmd, running)
	if c != nil {
		w.child = c
		w.t.Cleanup(c.kill)
	}
	if err != nil {
		return err
	}
	w.connect(at.Admin, at.TokenFile)
	return nil
}

// begin starts a process that announces itself, and waits until it has. With
// errDied comes the process, which has ended.
func begin(cmd *exec.Cmd, running func(*child)) (*child, announcement, error) {
	var at announcement
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, at, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, at, err
	}
	if err := cmd.Start(); err != nil {
		return nil, at, err
	}
	c := &child{cmd: cmd, stdin: stdin, gone: make(chan struct{})}
	running(c)
	line, readErr := bufio.NewReader(stdout).ReadBytes('\n')
	go func() {
		_, _ = io.Copy(io.Discard, stdout) // A log, where there is more.
		c.err = cmd.Wait()
		close(c.gone)
	}()
	if readErr != nil || json.Unmarshal(line, &at) != nil {
		<-c.gone
		return c, at, fmt.Errorf("%w: %w", errDied, c.err)
	}
	return c, at, nil
}

// mustSpawn is spawn where nothing is armed.
func (w *world) mustSpawn() {
	w.t.Helper()
	if err := w.spawn(""); err != nil {
		w.t.Fatalf("%v\n%v", err, w.output)
	}
}

// kill ends the process with SIGKILL and returns when it is gone. It may be called
// again.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.gone
}

// end lets the process stop in order.
func (c *child) end() error {
	_ = c.stdin.Close()
	<-c.gone
	return c.err
}

// ringOf makes the program's ledger, with a log of such a length.
func (w *world) ringOf(length int64) {
	w.t.Helper()
	c := loadConfig(w.t, w.settings.write(w.t))
	badgerstore.CreateForTest(w.t, app.StoreConfig(c, "test", zerolog.Nop(), clock.System()), length)
}

// mustHaveDied waits for the end of a process that doesn't answer any more, which
// must be by SIGKILL.
func (w *world) mustHaveDied(why error) {
	w.t.Helper()
	select {
	case <-w.child.gone:
	case <-time.After(patience):
		w.t.Fatalf("the program doesn't answer: %v", why)
	}
	if !w.child.killed() {
		w.t.Fatalf("the program ended by itself: %v", w.child.err)
	}
}

// killed reports whether the process, which has ended, died by SIGKILL.
func (c *child) killed() bool {
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
