package fault

import "sync/atomic"

// Op is a kind of durability step.
type Op string

// The kinds of steps that [Watch] tells of.
const (
	// OpPoint is the passing of a [Point].
	OpPoint Op = "point"
	// OpSync makes the content of a file durable.
	OpSync Op = "sync"
	// OpSyncDir makes the names in a folder durable.
	OpSyncDir Op = "syncdir"
	// OpRename gives a file another name.
	OpRename Op = "rename"
	// OpCommit begins to make a transaction durable.
	OpCommit Op = "commit"
	// OpFold commits a batch of a fold.
	OpFold Op = "fold"
)

// Step is one step on the way to durability: something that a crash comes before or after.
// All but points and commits are told twice, before they are done and after they were.
type Step struct {
	Op Op
	// Name is a point's name, a path that is synced or renamed to, or what a transaction is about. Of one that is put
	// back, it says where.
	Name string
	// Done says that it was done.
	Done bool
}

var watcher atomic.Pointer[func(Step)]

// Watch has fn called at each step from now on, in the goroutine that takes it. So fn may kill the process there.
// Without it a step costs one atomic load. The returned function ends it. There is one watcher at a time; a later one
// replaces it.
func Watch(fn func(Step)) (stop func()) {
	watcher.Store(&fn)
	return func() { watcher.CompareAndSwap(&fn, nil) }
}

// Watched reports whether somebody watches, for steps whose name costs something.
func Watched() bool { return watcher.Load() != nil }

// Begin tells that a step begins. End is to be called with its error.
func Begin(op Op, name string) Step {
	s := Step{Op: op, Name: name}
	s.tell()
	return s
}

// End tells that the step was done, unless it failed, and returns err.
func (s Step) End(err error) error {
	if err == nil {
		s.Done = true
		s.tell()
	}
	return err
}

func (s Step) tell() {
	if fn := watcher.Load(); fn != nil {
		(*fn)(s)
	}
}
