package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// relay hands signals to the command while it runs; before and after, they end
// what is waited for.
type relay struct {
	ctx     context.Context
	child   chan syscall.Signal
	cancel  context.CancelFunc
	running atomic.Bool
	raw     chan os.Signal
}

// relayed are the signals by which a session manager or a person ends a program.
var relayed = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

func relaySignals(ctx context.Context) *relay {
	r := &relay{child: make(chan syscall.Signal, 8), raw: make(chan os.Signal, 8)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	for _, s := range relayed {
		// Who starts us with nohup, or in the background of a script, has it ignored, by the
		// command too.
		if !signal.Ignored(s) {
			signal.Notify(r.raw, s)
		}
	}
	go func() {
		for s := range r.raw {
			r.pass(s)
		}
	}()
	return r
}

// outliveReaders keeps a sentence or a line of the log that nobody reads any more from ending
// the program, as it would in front of a tee that Ctrl-C has ended: what is being sent would
// become unknown, and how the run ended would be told nobody. Programs that it starts are
// ended by such a write as ever.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// pass hands one signal on. Signals that the command has not taken yet are enough.
func (r *relay) pass(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	if !ok || !r.running.Load() {
		r.cancel()
		return
	}
	select {
	case r.child <- sig:
	default:
	}
}

// toChild starts the command and waits for its end: signals are the command's from before
// it is there, as nothing else would tell it of them.
func (r *relay) toChild(run func()) {
	r.running.Store(true)
	defer r.running.Store(false)
	run()
}

// close ends the relay.
func (r *relay) close() {
	signal.Stop(r.raw)
	close(r.raw)
	r.cancel()
}
