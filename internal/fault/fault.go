// Package fault holds the named crash points of the program.
//
// A point marks an instant at which losing the process must do no harm, most often a durability boundary. It is a
// package-level variable where it is passed:
//
//	var afterClaim = fault.New("proxy.after_claim")
//
//	func send() {
//		afterClaim.Pass()
//		…
//	}
//
// An unarmed point costs one atomic load and does nothing. The environment variable KEEP_FAULT arms points to kill the
// process (see [ArmFromEnv]). A test arms one to run a function (see [Do]). Names lists every point that is linked into
// the program, so that a crash matrix can't forget one.
//
// # Failure
//
// A name that no point has, or a count below 1, arms nothing at all and is an error. The program then ends before it
// serves: a test that kills nobody must not pass. A name that is malformed or comes twice in the program's own code
// panics at its start.
//
// # Caveats
//
// Points are global to the process: tests that arm the same point must not run
// in parallel. Arming replaces what was armed at that point before.
package fault

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Point is one named crash point. Make it with [New].
type Point struct {
	name  string
	armed atomic.Pointer[action]
}

// action runs fn at the passing that counts left down to zero.
type action struct {
	left atomic.Int64
	fn   func()
}

var registry = struct {
	sync.Mutex
	points map[string]*Point
}{points: map[string]*Point{}}

// New registers a point. Names have the form "package.what_just_happened", in lower case. It is called once for each
// name, from a package-level variable. It panics if the name is malformed or taken: no input can bring that about.
func New(name string) *Point {
	if !validName(name) {
		panic(fmt.Sprintf("fault: malformed point name %q", name))
	}
	registry.Lock()
	defer registry.Unlock()
	if registry.points[name] != nil {
		panic(fmt.Sprintf("fault: point %q registered twice", name))
	}
	p := &Point{name: name}
	registry.points[name] = p
	return p
}

func validName(name string) bool {
	pkg, what, ok := strings.Cut(name, ".")
	if !ok || pkg == "" || what == "" {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") == "" && !strings.Contains(what, ".")
}

// Names lists the names of all points in this program, sorted.
func Names() []string {
	registry.Lock()
	defer registry.Unlock()
	return slices.Sorted(maps.Keys(registry.points))
}

// Name returns the point's name.
func (p *Point) Name() string { return p.name }

// Pass tells who watches, and does what the point was armed for, or nothing. It may
// not return: an armed point can kill the process.
func (p *Point) Pass() {
	Step{Op: OpPoint, Name: p.name, Done: true}.tell()
	a := p.armed.Load()
	if a == nil || a.left.Add(-1) != 0 {
		return
	}
	a.fn()
}
