package notify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/internal/names"
	"keep-proxy/ledger"
)

// Source is what is read of the ledger.
type Source interface {
	ID() string
	Events(ctx context.Context, mutation string, after uint64, limit int) ([]ledger.Event, error)
	Mutations(ctx context.Context, f ledger.Filter) (ledger.Page[*ledger.Mutation], error)
	MutationByID(ctx context.Context, id string) (*ledger.Mutation, error)
	View(ctx context.Context, fn func(ledger.View) error) error
}

// Destination takes messages.
type Destination interface {
	// Name is the one in the configuration.
	Name() string
	// Deliver returns nil once the message was taken. Its error names no secret.
	Deliver(ctx context.Context, m Message, body []byte) error
}

// Config is what New needs. Ledger, Path, Now and at least one destination are required.
type Config struct {
	Ledger       Source
	Path         string
	Destinations []Destination
	// PublicURL is how people reach the admin API; empty for no links.
	PublicURL string
	// Flags are those by which a command finds the ledger from any folder, with a space before each.
	Flags string
	// StandingAfter is how long work stands still before that is told; 0 for never.
	StandingAfter time.Duration
	// Check says how a person finds out what became of a mutation, and why the API can't be asked. It may be nil.
	Check func(ctx context.Context, m *ledger.Mutation) (text, cannotVerify string)
	Now   func() time.Time
	// After is as time.After; the default.
	After func(time.Duration) <-chan time.Time
	Log   zerolog.Logger
}

// Intervals of the work.
const (
	poll      = time.Second
	batch     = 1000
	retryBase = 5 * time.Second
	retryCap  = 15 * time.Minute
	// Timeout bounds one delivery.
	Timeout = 30 * time.Second
)

// Notifier tells destinations about escalations. Make it with New.
type Notifier struct {
	config Config
	queue  *queue
	began  bool
	// present is how far begin came.
	present uint64
	// aligned says that what the history doesn't tell was looked at.
	aligned bool
	// fault is why the history can't be told, nil for nothing.
	fault atomic.Pointer[string]
	// wake tells each destination that its queue may have grown.
	wake map[string]chan struct{}
}

// Standing is how one destination stands.
type Standing struct {
	Name    string
	Waiting int
	Dropped int
	Tries   int
	// Since is when the message that waits first was tried first; zero if it wasn't, or
	// was delivered.
	Since time.Time
	// Error is why it wasn't, or why messages that should wait don't.
	Error string
}

// New reads the queue. The error says what is wrong with its file.
func New(c Config) (*Notifier, error) {
	if c.After == nil {
		c.After = time.After
	}
	n := &Notifier{config: c, wake: map[string]chan struct{}{}}
	for _, d := range c.Destinations {
		n.wake[d.Name()] = make(chan struct{}, 1)
	}
	var err error
	n.queue, n.began, err = openQueue(c.Path, c.Ledger.ID(), slices.Sorted(maps.Keys(n.wake)))
	return n, err
}

// Status tells how each destination stands, by name.
func (n *Notifier) Status() []Standing {
	n.queue.mu.Lock()
	defer n.queue.mu.Unlock()
	var out []Standing
	for _, name := range slices.Sorted(maps.Keys(n.queue.Queues)) {
		l := n.queue.Queues[name]
		s := Standing{name, len(l.Messages), l.Dropped, l.Tries, l.Since, l.Error}
		if fault := n.fault.Load(); fault != nil && s.Error == "" {
			s.Error = "what is asked isn't queued: " + *fault
		}
		out = append(out, s)
	}
	return out
}

// Run tells until ctx ends.
func (n *Notifier) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, d := range n.config.Destinations {
		running.Go(func() { n.deliver(ctx, d) })
	}
	for polls := 1; ; polls++ {
		n.wakeAll()
		err := n.read(ctx)
		if err == nil && polls%n.lookEvery() == 0 {
			err = n.stand(ctx)
		}
		n.looked(ctx, err)
		select {
		case <-ctx.Done():
			return
		case <-n.config.After(poll):
		}
	}
}

// looked keeps how reading the history ended, for Status, and logs what is news of it.
func (n *Notifier) looked(ctx context.Context, err error) {
	if err == nil {
		n.fault.Store(nil)
		return
	}
	if ctx.Err() != nil {
		return
	}
	text := err.Error()
	if before := n.fault.Swap(&text); before == nil || *before != text {
		n.config.Log.Error().Err(err).Msg("notifications not queued; trying again")
	}
}

func (n *Notifier) wakeAll() {
	for _, w := range n.wake {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// read queues what the history tells since it was read last.
func (n *Notifier) read(ctx context.Context) error {
	if n.began && !n.aligned {
		if err := n.comeBack(ctx); err != nil {
			return err
		}
	}
	if !n.began {
		if err := n.begin(ctx); err != nil {
			return err
		}
		return n.align(ctx)
	}
	for {
		events, err := n.config.Ledger.Events(ctx, "", n.queue.cursor(), batch)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			if n.aligned {
				return nil
			}
			return n.align(ctx)
		}
		open := maps.Clone(n.queue.Open)
		var messages []Message
		for _, e := range events {
			more, err := n.tell(ctx, e, open)
			if err != nil {
				return err
			}
			messages = append(messages, more...)
		}
		last := events[len(events)-1].Seq
		if len(messages) == 0 {
			// Reading it again after a restart does no harm.
			n.queue.setCursor(last)
			continue
		}
		if err := n.queue.add(messages, func(s *stored) { s.Cursor, s.Open = last, open }); err != nil {
			return err
		}
		n.wakeAll()
	}
}

// begin starts at the present: what is open is told, what is over isn't.
func (n *Notifier) begin(ctx context.Context) error {
	for {
		events, err := n.config.Ledger.Events(ctx, "", n.present, batch)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			n.queue.setCursor(n.present)
			return nil
		}
		n.present = events[len(events)-1].Seq
	}
}

// align tells once, after a start, what the history doesn't. That was open before there was a queue, or was opened or
// ended without an event that says so.
func (n *Notifier) align(ctx context.Context) error {
	open, messages := map[string]int{}, []Message(nil)
	err := n.each(ctx, ledger.Filter{Escalated: true}, func(m *ledger.Mutation) {
		e := m.Escalation
		if !m.Escalated() {
			return
		}
		if open[m.ID] = e.Number; n.queue.Open[m.ID] != e.Number {
			messages = append(messages, n.message(ctx, m, change{number: e.Number, at: e.OpenedAt}))
		}
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(n.queue.Open)) {
		if number := n.queue.Open[id]; open[id] != number {
			m, err := n.record(ctx, id)
			if err != nil {
				return err
			}
			messages = append(messages, n.message(ctx, m, change{number: number, closed: true, at: n.config.Now()}))
		}
	}
	inOrder(messages)
	if err := n.queue.add(messages, func(s *stored) { s.Open = open }); err != nil {
		return err
	}
	n.began, n.aligned = true, true
	n.wakeAll()
	return nil
}

// each visits what is selected.
func (n *Notifier) each(ctx context.Context, f ledger.Filter, visit func(*ledger.Mutation)) error {
	for f.Limit = batch; ; {
		page, err := n.config.Ledger.Mutations(ctx, f)
		if err != nil {
			return err
		}
		for _, m := range page.Items {
			visit(m)
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return nil
		}
	}
}

// tell makes the messages of one event, and notes in open what they say. An escalation
// that took the place of an open one ended it.
func (n *Notifier) tell(ctx context.Context, e ledger.Event, open map[string]int) ([]Message, error) {
	told := open[e.Mutation]
	switch {
	case e.Escalation == 0, !e.EscalationClosed && e.Escalation <= told, e.EscalationClosed && e.Escalation != told:
		return nil, nil
	}
	m, err := n.record(ctx, e.Mutation)
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	var out []Message
	if told != 0 {
		delete(open, e.Mutation)
		out = append(out, n.message(ctx, m, change{number: told, closed: true, at: e.At, actor: e.Actor}))
	}
	if !e.EscalationClosed && m.State != "" {
		open[e.Mutation] = e.Escalation
		out = append(out, n.message(ctx, m, change{number: e.Escalation, at: e.At, why: e.Why}))
	}
	return out, nil
}

// record reads a mutation. Of one that the ledger has no more, only the id is left. Retention forgot it, or an older
// copy took the ledger's place. Nobody is asked about it, and others must be told of all the same.
func (n *Notifier) record(ctx context.Context, id string) (*ledger.Mutation, error) {
	m, err := n.config.Ledger.MutationByID(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return &ledger.Mutation{Intent: ledger.Intent{ID: id}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("mutation %s: %w", id, err)
	}
	return m, nil
}

// message tells of an escalation.
func (n *Notifier) message(ctx context.Context, m *ledger.Mutation, c change) Message {
	out := messageOf(m, c)
	if back := n.queue.back(); back > 0 {
		out.ID += "-" + strconv.Itoa(back+1)
	}
	return n.whole(ctx, m, out)
}

// whole adds what the rule, the run and the ledger tell.
func (n *Notifier) whole(ctx context.Context, m *ledger.Mutation, out Message) Message {
	out.Data.Ledger = n.config.Ledger.ID()
	if out.Data.Resolve != "" {
		out.Data.Resolve += n.config.Flags
		if n.config.Check != nil {
			text, cannot := n.config.Check(ctx, m)
			out.Data.ManualCheck, out.Data.CannotVerify = names.OneLine(text), names.OneLine(cannot)
		}
	}
	if n.config.PublicURL != "" {
		out.Data.URL = n.config.PublicURL + "/v1/mutations/" + m.ID
	}
	// A hint that can't be read is no reason to stay silent.
	_ = n.config.Ledger.View(ctx, func(v ledger.View) error {
		r, err := v.Run(m.Run)
		if err == nil {
			out.Data.ResumeHint = names.OneLine(r.ResumeHint)
		}
		return err
	})
	return out
}
