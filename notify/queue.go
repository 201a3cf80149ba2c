package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// MaxQueue is how many messages wait for one destination.
const MaxQueue = 1000

// stored is the file's content.
type stored struct {
	Format int    `json:"format"`
	Ledger string `json:"ledger"`
	// Cursor is the number of the last event that was read.
	Cursor uint64 `json:"cursor"`
	// Back counts how often the history went back. Escalations have the numbers of earlier ones
	// then, which were told, so that their messages need other ids.
	Back int `json:"back,omitempty"`
	// Open is the number of the escalation of each mutation that was told as opened.
	Open map[string]int `json:"open"`
	// Standing is what was told to stand still, by its scope.
	Standing map[string]standstill `json:"standing,omitempty"`
	Queues   map[string]*line      `json:"queues"`
}

// line is the queue of one destination.
type line struct {
	// New says that the destination was told nothing yet of what was open before it came.
	New      bool      `json:"new,omitempty"`
	Messages []Message `json:"messages"`
	Dropped  int       `json:"dropped,omitempty"`
	// Tries, Since and Error tell of the first message.
	Tries int       `json:"tries,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error,omitempty"`
	// failed says that this process tried it, in vain.
	failed bool
}

// queue keeps what has to be told, durably.
type queue struct {
	path string

	mu sync.Mutex
	stored
}

// storedFormat is the version of the file.
const storedFormat = 1

// openQueue reads the file. With began, there was one for this ledger. What another ledger's history told is worth
// nothing here.
func openQueue(path, ledgerID string, names []string) (q *queue, began bool, err error) {
	q = &queue{path: path}
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, false, fmt.Errorf("notifications: %w", err)
	default:
		if err := json.Unmarshal(content, &q.stored); err != nil || q.Format != storedFormat {
			return nil, false, fmt.Errorf("notifications: %s can't be read (format %d): %w; "+
				"move it away: what is open then is told again", path, q.Format, errors.Join(err, errFormat))
		}
		began = q.Ledger == ledgerID
	}
	if !began {
		q.stored = stored{}
	}
	q.Format, q.Ledger = storedFormat, ledgerID
	if q.Open == nil {
		q.Open = map[string]int{}
	}
	lines := make(map[string]*line, len(names))
	for _, name := range names {
		if lines[name] = q.Queues[name]; lines[name] == nil {
			lines[name] = &line{New: began}
		}
	}
	q.Queues = lines
	return q, began, nil
}

// errFormat says that the file's format isn't this version's.
var errFormat = errors.New("not of this version's format")

// cursor is how far the history was read.
func (q *queue) cursor() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.Cursor
}

// setCursor notes that nothing had to be told up to here, without a write.
func (q *queue) setCursor(seq uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Cursor = seq
}

// wentBack notes that the history did, which the next write keeps.
func (q *queue) wentBack() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Back++
}

// back is how often the history went back.
func (q *queue) back() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.Back
}

// add queues messages for every destination, and notes what they tell in the same write.
func (q *queue) add(messages []Message, note func(*stored)) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	note(&q.stored)
	for _, l := range q.Queues {
		l.push(messages)
	}
	return q.save()
}

// push queues messages, and drops of too many those that are needed least.
func (l *line) push(messages []Message) {
	l.Messages = append(l.Messages, messages...)
	before := len(l.Messages)
	if before > MaxQueue {
		l.dropOver(before - MaxQueue)
	}
	if over := len(l.Messages) - MaxQueue; over > 0 {
		// The first one may be on its way; it goes too, and is told once more at most.
		l.Messages = l.Messages[over:]
	}
	l.Dropped += before - len(l.Messages)
}

// dropOver drops the oldest questions that wait here with their answers, until n messages are gone. Open questions,
// perhaps older, are told to nobody else. The first message may be on its way, so that its answer stays.
func (l *line) dropOver(n int) {
	opened, over := map[string]bool{}, []string(nil)
	for _, m := range l.Messages[1:] {
		switch m.Type {
		case TypeOpened, TypeStandsStill:
			opened[m.subject()] = true
		case TypeClosed, TypeGoesOn:
			if opened[m.subject()] {
				over = append(over, m.subject())
			}
		}
	}
	gone := map[string]bool{}
	for _, id := range over[:min(len(over), (n+1)/2)] {
		gone[id] = true
	}
	kept := slices.DeleteFunc(slices.Clone(l.Messages[1:]), func(m Message) bool { return gone[m.subject()] })
	l.Messages = append(l.Messages[:1:1], kept...)
}

// introducing reports whether there are destinations that are new.
func (q *queue) introducing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.Queues {
		if l.New {
			return true
		}
	}
	return false
}

// introduce queues messages for the destinations that are new, which they are no longer then.
func (q *queue) introduce(messages []Message) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.Queues {
		if l.New {
			l.push(messages)
			l.New = false
		}
	}
	return q.save()
}

// first is the message that a destination gets next.
func (q *queue) first(name string) (Message, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.Queues[name]
	if len(l.Messages) == 0 {
		return Message{}, false
	}
	return l.Messages[0], true
}

// past is the first message that is about something else than the first one.
func (q *queue) past(name string) (Message, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.Queues[name].Messages {
		if m.subject() != q.Queues[name].Messages[0].subject() {
			return m, true
		}
	}
	return Message{}, false
}

// done takes a message that was delivered out of the queue.
func (q *queue) done(name, id string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.Queues[name]
	i := slices.IndexFunc(l.Messages, func(m Message) bool { return m.ID == id })
	if i <= 0 {
		l.Tries, l.Since, l.Error, l.failed = 0, time.Time{}, "", false
	}
	if i >= 0 {
		l.Messages = slices.Delete(slices.Clone(l.Messages), i, i+1)
	}
	return q.save()
}

// failed notes a try that failed, and returns how many there were. It isn't worth a write before
// the end: see keepTries.
func (q *queue) failed(name string, at time.Time, why string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.Queues[name]
	if l.Tries == 0 {
		l.Since = at
	}
	l.Tries++
	l.Error, l.failed = why, true
	return l.Tries
}

// failing says that a destination didn't take its message when this process tried it last. What an earlier one tried
// says nothing of now. If it counted, and each process ended before an answer, nobody would ever be told.
func (q *queue) failing(name string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.Queues[name].failed
}

// tries is how often a destination's first message was tried in vain.
func (q *queue) tries(name string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.Queues[name].Tries
}

// keepTries writes down what was tried in vain, if anything was.
func (q *queue) keepTries() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.Queues {
		if l.failed {
			return q.save()
		}
	}
	return nil
}

// save writes the file, whole or not at all, and syncs it.
func (q *queue) save() (err error) {
	content, err := json.Marshal(&q.stored)
	if err != nil {
		return fmt.Errorf("notifications: %w", err)
	}
	t, err := os.CreateTemp(filepath.Dir(q.path), "."+filepath.Base(q.path)+"-*")
	if err != nil {
		return fmt.Errorf("notifications: %w", err)
	}
	_, err = t.Write(content)
	err = errors.Join(err, t.Sync(), t.Close())
	if err == nil {
		err = os.Rename(t.Name(), q.path)
	}
	if err != nil {
		return fmt.Errorf("notifications: %w", errors.Join(err, os.Remove(t.Name())))
	}
	return syncDir(filepath.Dir(q.path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("notifications: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
