package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"keep-proxy/cli/serving"
)

// Bounds of what the demo waits for, on a machine that is busy with something else, too.
const (
	startTimeout = 2 * time.Minute
	stopTimeout  = 30 * time.Second
	pollEvery    = 20 * time.Millisecond
)

// proxy is the proxy's process.
type proxy struct {
	cmd   *exec.Cmd
	state serving.State
	ended chan struct{}
	err   error
}

// startProxy starts the proxy. One that comes back listens where it was before, so that clients find it. If its port
// was taken meanwhile, it listens somewhere else.
func (s *stage) startProxy(ctx context.Context) error {
	if s.proxy == nil {
		return s.serve(ctx)
	}
	before := s.proxy.state
	err := s.serve(ctx, "--listen", before.Proxy, "--admin-listen", strings.TrimPrefix(before.Admin, "http://"))
	if err != nil && ctx.Err() == nil {
		err = s.serve(ctx)
	}
	return err
}

// serve starts `keep-proxy serve` with more flags, and waits until it announced itself.
func (s *stage) serve(ctx context.Context, more ...string) error {
	args := append([]string{"serve", "--config", s.config, "--" + UntilEOFFlag}, more...)
	var said strings.Builder
	p := &proxy{cmd: exec.Command(s.o.Self, args...), ended: make(chan struct{})} //nolint:gosec,noctx // Ourselves; it is stopped in order.
	p.cmd.Env = cleanEnvironment()
	p.cmd.Stderr = &said
	// Ctrl-C on a terminal is for the demo, which stops the proxy in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Nothing is ever written: that it ends with this process is the point.
	if _, err := p.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	if err := p.announced(ctx, s.data()); err != nil {
		return errors.Join(fmt.Errorf("the proxy did not start: %w: %s", err, said.String()), p.stop())
	}
	s.proxy = p
	return nil
}

func (p *proxy) announced(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		state, err := serving.Find(dir)
		if err != nil {
			return err
		}
		if state != nil && state.PID == p.cmd.Process.Pid {
			p.state = *state
			return nil
		}
		select {
		case <-p.ended:
			return errors.New("it ended")
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
}

// kill is SIGKILL: no handler sees it.
func (p *proxy) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// stop lets the proxy end in order.
func (p *proxy) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	late := time.NewTimer(stopTimeout)
	defer late.Stop()
	select {
	case <-p.ended:
		return nil
	case <-late.C:
		p.kill()
		return errors.New("the demo's proxy did not stop in time and was killed")
	}
}

// cleanEnvironment is ours without a proxy, and without what configures another keep-proxy.
func cleanEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return strings.HasPrefix(name, "KEEP_") || strings.HasSuffix(strings.ToUpper(name), "_PROXY")
	})
}

// command is a command of the play: its output is indented, its code its result.
func (s *stage) command(ctx context.Context, environ []string, args ...string) (int, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // Ourselves, or the demo's own script.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	cmd.Env = append(cleanEnvironment(), environ...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		s.sayf("    %s", lines.Text())
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// keep runs a command of keep-proxy and shows how it is typed.
func (s *stage) keep(ctx context.Context, args ...string) (int, error) {
	typed := []string{"keep-proxy"}
	for _, a := range args {
		if strings.Contains(a, " ") {
			a = "'" + a + "'"
		}
		typed = append(typed, a)
	}
	s.sayf("  $ %s", strings.Join(typed, " "))
	all := append([]string{s.o.Self, args[0], "--config", s.config}, args[1:]...)
	return s.command(ctx, nil, all...)
}
