package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// fakeDestination records what it took, and fails as often as it is told to.
type fakeDestination struct {
	name string

	mu    sync.Mutex
	taken []string
	told  []Message
	asked int
	fails int
	// refuses is the mutation about which it takes nothing.
	refuses string
}

func (d *fakeDestination) Name() string { return d.name }

func (d *fakeDestination) Deliver(_ context.Context, m Message, body []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails > 0 {
		d.fails--
		return errors.New("not today")
	}
	d.asked++
	if m.Data.Mutation == d.refuses {
		return errors.New("not that")
	}
	if !strings.Contains(string(body), `"mutation":"`+m.Data.Mutation+`"`) {
		return errors.New("the body isn't the message's")
	}
	if !strings.Contains(string(body), `"url":"https://keep.test/v1/mutations/`+m.Data.Mutation+`"`) {
		return errors.New("the body has no link to the mutation")
	}
	d.taken, d.told = append(d.taken, m.ID), append(d.told, m)
	return nil
}

func (d *fakeDestination) got() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.taken)
}

// world is a ledger whose mutations ask a person.
type world struct {
	t    *testing.T
	path string
	log  zerolog.Logger
	*ledger.Ledger
	// after is the notifier's StandingAfter.
	after time.Duration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	now := func() ledger.Stamp {
		return ledger.Stamp{Wall: time.Now(), Boot: time.Duration(time.Now().UnixNano()), BootID: "b"}
	}
	store := ledgertest.NewMemory(ledger.Process{ID: "p", Started: now()})
	n := 0
	return &world{t, filepath.Join(t.TempDir(), "notify.json"), zerolog.Nop(), ledger.New(store, ledger.Config{
		Now: now, NewID: func() string { n++; return "r" + string(rune('a'+n)) },
	}), 0}
}

// ask makes a mutation whose outcome only a person can tell, and returns its id.
func (w *world) ask(name byte) string {
	w.t.Helper()
	key := ledger.Key{name}
	record := ledger.Mutation{
		Intent: ledger.Intent{Connector: "c", Operation: "o", Target: "Pay " + string(name)},
		Payload: ledger.Payload{
			PayloadDigest: "p",
			Policy:        ledger.Policy{BlockScope: ledger.BlockMutation},
		},
	}
	scope := ledger.Scope{Workflow: "w", Item: string(name), Attempt: 1}
	record.Scope = scope
	out, err := w.Claim(w.t.Context(), ledger.Claim{Scope: scope, Key: key, DispatchID: "d" + string(name), Record: record})
	if err != nil || out.Dispatch == nil {
		w.t.Fatalf("claim %+v, %v", out, err)
	}
	d := *out.Dispatch
	d.Verdict, d.Reason = ledger.VerdictUncertain, "no answer"
	if _, err := w.EndDispatch(w.t.Context(), ledger.EndDispatch{Key: key, Dispatch: d}); err != nil {
		w.t.Fatal(err)
	}
	return key.ID()
}

// answer is a person's decision.
func (w *world) answer(id string) {
	w.t.Helper()
	m, err := w.MutationByID(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.Resolve(w.t.Context(), ledger.Resolve{Key: m.Key, Action: ledger.OnSkip, Actor: "ada", Reason: "x", Version: m.Version})
	if err != nil {
		w.t.Fatal(err)
	}
}

// notifying runs a notifier until stop is called.
func (w *world) notifying(destinations ...Destination) (n *Notifier, stop func()) {
	w.t.Helper()
	n, err := New(Config{
		Ledger: w.Ledger, Path: w.path, Destinations: destinations, PublicURL: "https://keep.test", Now: time.Now, Log: w.log,
		StandingAfter: w.after, Check: looks,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.Run(ctx) })
	return n, func() { cancel(); running.Wait() }
}

// pass lets time pass in a bubble of testing/synctest.
func pass(d time.Duration) { <-time.After(d) }

func want(t *testing.T, d *fakeDestination, ids ...string) {
	t.Helper()
	if got := d.got(); !slices.Equal(got, ids) {
		t.Errorf("%s got %v, want %v", d.name, got, ids)
	}
}

func TestEachEscalationAndItsEndAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t), &fakeDestination{name: "pager"}
		before := w.ask('a')
		over := w.ask('o')
		w.answer(over)
		_, stop := w.notifying(d)
		synctest.Wait()
		pass(2 * poll)
		synctest.Wait()
		want(t, d, before+"-1-opened")
		next := w.ask('b')
		pass(2 * poll)
		w.answer(next)
		w.answer(before)
		short := w.ask('c')
		w.answer(short)
		pass(2 * poll)
		synctest.Wait()
		want(t, d, before+"-1-opened", next+"-1-opened", next+"-1-closed", before+"-1-closed", short+"-1-opened", short+"-1-closed")
		stop()
	})
}

func TestADestinationThatFailsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		good, bad := &fakeDestination{name: "good"}, &fakeDestination{name: "bad", fails: 3}
		n, stop := w.notifying(good, bad)
		a := w.ask('a')
		pass(2 * poll)
		synctest.Wait()
		want(t, good, a+"-1-opened")
		want(t, bad)
		s := n.Status()
		if s[0].Name != "bad" || s[0].Waiting != 1 || s[0].Error != "not today" || s[0].Tries == 0 || s[0].Since.IsZero() || s[1].Waiting != 0 {
			t.Errorf("status %+v", s)
		}
		pass(time.Minute)
		synctest.Wait()
		want(t, bad, a+"-1-opened")
		if s := n.Status(); s[0].Waiting != 0 || s[0].Error != "" {
			t.Errorf("status %+v", s)
		}
		stop()
	})
}

// Readers of JSON keep one of two members of a name, so that the line would lose what it
// is about, or which message it was.
// A message that isn't taken for what it holds keeps nobody from being told of others.
func TestAMessageThatIsNotTakenHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t), &fakeDestination{name: "pager"}
		d.refuses = w.ask('a')
		pass(time.Second)
		b := w.ask('b')
		refused := d.refuses
		n, stop := w.notifying(d)
		defer stop()
		pass(20 * time.Second)
		want(t, d)
		w.answer(refused) // Its end isn't told before its beginning.
		pass(2 * time.Minute)
		want(t, d, b+"-1-opened")
		c := w.ask('c')
		w.answer(b)
		pass(2 * time.Second)
		want(t, d, b+"-1-opened", c+"-1-opened", b+"-1-closed")
		if s := n.Status()[0]; s.Waiting != 2 || s.Tries < pastAfter || s.Error != "not that" {
			t.Errorf("%+v", s)
		}
		// One that is down isn't asked for each message at each try.
		d.mu.Lock()
		d.fails, d.asked = 1000, 0
		d.mu.Unlock()
		for name := byte('d'); name < 'z'; name++ {
			w.ask(name)
		}
		pass(time.Hour)
		d.mu.Lock()
		tried := 1000 - d.fails
		d.fails, d.refuses = 0, ""
		d.mu.Unlock()
		if tried > 2*8 {
			t.Errorf("asked %d times in an hour", tried)
		}
		pass(15 * time.Minute)
		if got := d.got(); len(got) != 3+2+22 || got[3] != refused+"-1-opened" || got[4] != refused+"-1-closed" {
			t.Errorf("in the end it got %d: %v", len(got), got)
		}
	})
}

func TestALineOfTheLogHasEachFieldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t), &fakeDestination{name: "pager", fails: 1}
		var lines bytes.Buffer
		w.log = zerolog.New(&lines)
		_, stop := w.notifying(d)
		a := w.ask('a')
		pass(time.Minute)
		stop()
		want(t, d, a+"-1-opened")
		var told []string
		for line := range strings.Lines(lines.String()) {
			var got struct {
				Message      string `json:"message"`
				Notification string `json:"notification"`
			}
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			told = append(told, got.Message+": "+got.Notification)
		}
		if should := []string{"not notified; trying again: " + a + "-1-opened", "notified: " + a + "-1-opened"}; !slices.Equal(told, should) {
			t.Errorf("the log says %q, want %q", told, should)
		}
	})
}

func TestWhatWasNotDeliveredOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		down := &fakeDestination{name: "pager", fails: 1000}
		_, stop := w.notifying(down)
		a := w.ask('a')
		pass(2 * poll)
		stop()
		// While nobody notifies, the question is answered and another one asked.
		w.answer(a)
		b := w.ask('b')
		up, added := &fakeDestination{name: "pager"}, &fakeDestination{name: "added"}
		_, stop = w.notifying(up, added)
		pass(2 * poll)
		synctest.Wait()
		want(t, up, a+"-1-opened", a+"-1-closed", b+"-1-opened")
		want(t, added, a+"-1-closed", b+"-1-opened")
		stop()
		_, stop = w.notifying(up, added)
		pass(2 * poll)
		synctest.Wait()
		if got := up.got(); len(got) != 3 {
			t.Errorf("after a restart it was told again: %v", got)
		}
		stop()
	})
}

func TestAProcessThatEndsTellsWhatItHasNotTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		up, down := &fakeDestination{name: "up"}, &fakeDestination{name: "down", fails: 1000}
		n, stop := w.notifying(up, down)
		synctest.Wait()
		stop()
		a, b := w.ask('a'), w.ask('b')
		want(t, up)
		if err := n.Last(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, up, a+"-1-opened", b+"-1-opened")
		if s := n.Status(); s[0].Waiting != 2 || s[0].Tries != 1 || s[1].Waiting != 0 {
			t.Errorf("status %+v: want one try, in vain, of the one that is down", s)
		}
		// What failed isn't tried again at the end.
		down.fails = 0
		if err := n.Last(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, down)
	})
}

func TestAQueueThatCannotBeReadIsNotGuessed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, content := range []string{"{", `{"format":2}`} {
		if err := os.WriteFile(w.path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := New(Config{Ledger: w.Ledger, Path: w.path, Destinations: []Destination{&fakeDestination{name: "x"}}, Now: time.Now})
		if err == nil || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func TestALongQueueDropsItsOldest(t *testing.T) {
	t.Parallel()
	q, _, err := openQueue(filepath.Join(t.TempDir(), "q"), "l", []string{"x"})
	if err != nil {
		t.Fatal(err)
	}
	messages := make([]Message, MaxQueue+2)
	messages[2].ID = "third"
	if err := q.add(messages, func(*stored) {}); err != nil {
		t.Fatal(err)
	}
	if m, ok := q.first("x"); !ok || m.ID != "third" || q.Queues["x"].Dropped != 2 {
		t.Errorf("first %+v, %d dropped", m, q.Queues["x"].Dropped)
	}
}

// What is open is told to nobody else; what is over by now is needed least.
func TestALongQueueDropsFirstWhatIsOver(t *testing.T) {
	t.Parallel()
	q, _, err := openQueue(filepath.Join(t.TempDir(), "q"), "l", []string{"x"})
	if err != nil {
		t.Fatal(err)
	}
	of := func(kind string, n int) Message {
		id := fmt.Sprint("e", n)
		return Message{ID: id + kind, Type: kind, Data: Data{Escalation: id}}
	}
	// The first may be on its way, so that its answer is told.
	messages := []Message{of(TypeOpened, 0), of(TypeClosed, 1), of(TypeOpened, 2), of(TypeOpened, 3), of(TypeClosed, 0), of(TypeClosed, 3)}
	for n := 4; len(messages) < MaxQueue+1; n++ {
		messages = append(messages, of(TypeOpened, n), of(TypeClosed, n))
	}
	if err := q.add(messages, func(*stored) {}); err != nil {
		t.Fatal(err)
	}
	l := q.Queues["x"]
	want := slices.Concat(messages[:3], messages[4:5], messages[6:])
	if same := func(a, b Message) bool { return a.ID == b.ID }; !slices.EqualFunc(l.Messages, want, same) || l.Dropped != 2 {
		t.Errorf("%d dropped; it begins with %+v", l.Dropped, l.Messages[:6])
	}
}

func TestWaitsGrow(t *testing.T) {
	t.Parallel()
	for tries, want := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 4: 40 * time.Second, 9: retryCap, 1000: retryCap} {
		if got := backoff(tries); got != want {
			t.Errorf("after %d tries %s, want %s", tries, got, want)
		}
	}
}
