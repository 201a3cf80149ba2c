// Package managed puts one managed run around one command. It keeps the run alive, and ends the command when the run
// has ended. It finishes the run when the command has ended. Its exit code says what became of both.
//
// Failure behaviour: a proxy that can't be asked doesn't end the command. Meanwhile nothing goes through it, and the
// run ends by its time limit. A run that can't be finished as done is never reported as a success. The command's own
// code doesn't change that.
package managed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// API is what a run needs of the admin API.
type API interface {
	Run(ctx context.Context, id string) (*wire.Run, error)
	Heartbeat(ctx context.Context, id string, h wire.Heartbeat) (*wire.Run, error)
	FinishRun(ctx context.Context, id string, f wire.FinishRun) (*wire.Run, error)
	Mutation(ctx context.Context, id string) (*wire.Mutation, error)
	Mutations(ctx context.Context, f client.Filter) (*wire.List[wire.Mutation], error)
}

// Process is the command.
type Process interface {
	Done() <-chan struct{}
	Code() int
	Signal(sig syscall.Signal)
	Stop()
}

// Session is one managed run around one command.
type Session struct {
	API API
	Run wire.Run
	// TTL is what a heartbeat asks for; 0 takes the server's.
	TTL time.Duration
	// KeepOpen leaves the item open although the command succeeded.
	KeepOpen bool
	// Say tells a person what happens.
	Say func(format string, args ...any)
	// Gone reports whether the proxy is gone for good; nil for never.
	Gone func() bool
	// Words are what an error of the API is told by: its refusals name its addresses, not commands.
	Words func(error) string

	// failing says that a mutation had failed when the command ended, and was not made good. That tells more than the
	// command's own code.
	failing bool
	// asked says that the run's end was asked for. It may have ended by that, though the answer was lost.
	asked bool
}

const (
	// poll is how often the run is looked at.
	poll = 200 * time.Millisecond
	// patience is how long finishing a run waits for a proxy that can't be asked.
	patience = 15 * time.Second
	// callTimeout bounds one look.
	callTimeout = 10 * time.Second
	// tellAfter is how long what is being sent is waited for in silence.
	tellAfter = time.Second
)

// Watch returns when the command has ended. Signals are handed on to it. When the
// run ends first, the command is ended.
func (s *Session) Watch(ctx context.Context, p Process, signals <-chan syscall.Signal) {
	look := time.NewTicker(poll)
	defer look.Stop()
	beat := time.NewTicker(Beat(s.Run))
	defer beat.Stop()
	for {
		select {
		case <-p.Done():
			return
		case sig := <-signals:
			p.Signal(sig)
		case <-beat.C:
			// A heartbeat that fails is followed by others; the run's own state tells.
			_ = s.call(ctx, func(ctx context.Context) (*wire.Run, error) {
				return s.API.Heartbeat(ctx, s.Run.ID, wire.Heartbeat{TTL: wire.Duration(s.TTL)})
			})
		case <-look.C:
			if _ = s.read(ctx); Ended(s.Run.State) {
				s.Say("the run is over (%s): %s; ending the command", s.Run.State, strings.TrimSuffix(s.Run.Reason, "."))
				p.Stop()
				return
			}
		}
	}
}

// Beat is how often a run's heartbeat is sent: a third of its time limit.
func Beat(r wire.Run) time.Duration { return max(r.ExpiresAt.Sub(r.OpenedAt)/3, 100*time.Millisecond) }

// read reads the run again. One that can't be read stays as it was.
func (s *Session) read(ctx context.Context) error {
	return s.call(ctx, func(ctx context.Context) (*wire.Run, error) { return s.API.Run(ctx, s.Run.ID) })
}

// call asks once, in bounded time, and keeps the run that comes back. The end of ctx doesn't end it.
func (s *Session) call(ctx context.Context, ask func(context.Context) (*wire.Run, error)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	run, err := ask(ctx)
	if err == nil {
		s.Run = *run
	}
	return err
}

// Finish ends the run after its command returned code, and says what became of it.
// A proxy that can't be asked is given some time to come back.
func (s *Session) Finish(ctx context.Context, code int) Verdict {
	err := s.persist(ctx, func() error { return s.finish(ctx, code) })
	_ = s.read(ctx)
	if err == nil && !s.failing && len(s.Run.Refused) == 0 && (code == 0) == (s.Run.State == stateFinished) {
		v := Verdict{Code: code, Run: s.Run.ID, State: s.Run.State, Class: s.Run.Class, Reason: s.Run.Reason, Mutation: s.Run.Cause}
		if code == 0 {
			v.Retry = RetryNo
		}
		return v
	}
	v := Judge(&s.Run, s.cause(ctx))
	if err != nil && v.Reason == "" {
		v.Reason = s.Words(err)
	}
	if !Ended(s.Run.State) { // Else its item would be busy until the time limit.
		_ = s.call(ctx, func(ctx context.Context) (*wire.Run, error) {
			return s.API.FinishRun(ctx, s.Run.ID, wire.FinishRun{Outcome: "failed"})
		})
	}
	return v
}

// persist tries again while the API can't be asked: for patience from the first failure on, or until ctx ends. The
// API's own refusals are answers.
func (s *Session) persist(ctx context.Context, try func() error) error {
	var over time.Time
	for {
		err := try()
		if err == nil || answered(err) || errors.Is(err, errOver) || ctx.Err() != nil {
			return err // Who hurries says nothing about the proxy.
		}
		switch now := time.Now(); {
		case over.IsZero():
			over = now.Add(patience)
			s.Say("the proxy can't be asked; trying for %s to finish the run", patience)
		case !now.Before(over), s.Gone != nil && s.Gone():
			return fmt.Errorf("the proxy can't be asked what became of run %s: %w", s.Run.ID, err)
		}
		if pause(ctx, poll) != nil {
			return err
		}
	}
}

// errOver says that the run had ended before it could be finished.
var errOver = errors.New("the run is over")

// finish reports the command's outcome. A failed command may leave a sending, which is waited for: it may become
// unknown.
func (s *Session) finish(ctx context.Context, code int) error {
	if code != 0 {
		if err := s.awaitSending(ctx); err != nil {
			return err
		}
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	switch {
	case !Ended(s.Run.State):
		s.failing = s.Run.State == stateFailing
	case !s.asked:
		return errOver
	}
	f := wire.FinishRun{Outcome: "failed"}
	if code == 0 {
		f = wire.FinishRun{Outcome: "done", KeepOpen: s.KeepOpen}
	}
	s.asked = true
	// Asked again it answers the same, and refuses a run that something else has ended.
	run, err := s.API.FinishRun(ctx, s.Run.ID, f)
	unused := s.Run.RequireTraffic && !s.Run.Traffic
	if p, ok := errors.AsType[*wire.Problem](err); ok && (len(p.Refused) > 0 || unused) {
		// It ends by what it was refused, or by that it asked for nothing.
		run, err = s.API.FinishRun(ctx, s.Run.ID, wire.FinishRun{Outcome: "failed"})
	}
	if err != nil {
		return fmt.Errorf("finish run %s: %w", s.Run.ID, err)
	}
	s.Run = *run
	return nil
}

// awaitSending returns when nothing of the run is being sent.
func (s *Session) awaitSending(ctx context.Context) error {
	for began, said := time.Now(), false; ; {
		list, err := s.API.Mutations(ctx, client.Filter{Run: s.Run.ID, States: []string{"in_flight"}})
		if err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return nil
		}
		if !said && time.Since(began) > tellAfter {
			said = true
			s.Say("the command has ended while something was being sent; waiting until it is known what became of that")
		}
		if err := pause(ctx, poll); err != nil {
			return fmt.Errorf("a signal came while run %s was still sending: %w", s.Run.ID, err)
		}
	}
}

// cause reads the mutation that the run names, else one of its own that keeps it from finishing. One whose end isn't
// known comes before one that failed, whose answer may have been delivered. It is nil if there is none, or if it
// can't be read.
func (s *Session) cause(ctx context.Context) *wire.Mutation {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if s.Run.Cause != "" {
		if m, err := s.API.Mutation(ctx, s.Run.Cause); err == nil {
			return m
		}
		return nil
	}
	for _, states := range [][]string{openStates, {"failed"}} {
		list, err := s.API.Mutations(ctx, client.Filter{Run: s.Run.ID, States: states})
		if err != nil {
			return nil
		}
		if len(list.Items) > 0 {
			return &list.Items[0]
		}
	}
	return nil
}
