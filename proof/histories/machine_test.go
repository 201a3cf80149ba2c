package histories

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
	"keep-proxy/proxy"
	"keep-proxy/reconcilers"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// virtual is the machine's three clocks in the bubble's time.
type virtual struct {
	began time.Time
	wall  atomic.Int64
	boots atomic.Int64
	// booted is when this boot began.
	booted atomic.Int64
}

func (v *virtual) Now() time.Time {
	return time.Now().Round(0).Add(time.Duration(v.wall.Load()))
}

func (v *virtual) Mono() time.Duration {
	return time.Since(v.began) - time.Duration(v.booted.Load())
}
func (v *virtual) Boot() time.Duration { return v.Mono() }
func (v *virtual) BootID() string      { return fmt.Sprintf("boot-%d", v.boots.Load()) }

func (v *virtual) reboot() {
	v.boots.Add(1)
	v.booted.Store(int64(time.Since(v.began)))
}

// machine is one computer with its disk. process is nil while it is down.
type machine struct {
	plan  *plan
	api   *api
	clock *virtual
	house *house
	ca    *proxy.CA
	// sets are the versions of the rules, the first of which is in force.
	sets    []*rules.Set
	version atomic.Int32
	// committed is told what each commit put, in their order.
	committed func(changes)
	commits   sync.Mutex
	// quiet is a pipe in which nothing ever is, ended one that has ended.
	quiet, ended *os.File
	ids          atomic.Int64

	mu      sync.Mutex
	store   *ledgertest.Memory
	process *process
	// armed is the event that waits for a commit or a write; left counts down to it.
	armed *event
	left  int
	// crashed wakes whoever starts the machine again.
	crashed chan event
	ending  sync.WaitGroup
	crashes int
	// refusals are starts that failed.
	refusals []string
}

// process is one life of the program.
type process struct {
	house      *house
	ledger     *ledger.Ledger
	proxy      *proxy.Proxy
	reconciler *reconcilers.Reconciler
	sender     *upstream.Sender
	reads      *upstream.Passthrough
	door       *door
	cancel     context.CancelFunc
	running    sync.WaitGroup
	conns      map[net.Conn]bool
	dead       bool
}

// pinned gives the stored version of the one connector.
func (p *process) pinned(ctx context.Context, hash string) (*rules.Connector, error) {
	content, err := p.ledger.Connector(ctx, hash)
	if err != nil {
		return nil, err
	}
	return p.house.load(hash, content)
}

// rules are those in force.
func (m *machine) rules() *rules.Set { return m.sets[m.version.Load()] }

// rewrite puts the next version of the rules in force, which is never taken back.
func (m *machine) rewrite() {
	if v := m.version.Load(); int(v)+1 < len(m.sets) {
		m.version.Store(v + 1)
	}
}

func (m *machine) stamp() ledger.Stamp {
	return ledger.Stamp{Wall: m.clock.Now(), Mono: m.clock.Mono(), Boot: m.clock.Boot(), BootID: m.clock.BootID()}
}

func (m *machine) newID() string { return fmt.Sprintf("id%d", m.ids.Add(1)) }

type credentials struct{}

func (credentials) Always(string, string, string) (string, string, bool, error) {
	return "", "", false, nil
}
func (credentials) For(string, string, string) (string, string, error) { return "", "", nil }

// start is a life of the program: recovery, then the listener, then the runner.
func (m *machine) start(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	born := ledger.Process{ID: m.newID(), Started: m.stamp()}
	if m.store == nil {
		m.store = ledgertest.NewMemory(born)
	} else {
		m.store = m.store.Reopen(born)
	}
	p := &process{house: m.house, conns: map[net.Conn]bool{}, door: newDoor()}
	p.ledger = ledger.New(disk{m.store, m}, ledger.Config{Now: m.stamp, NewID: m.newID})
	c := upstream.Config{
		Dial: m.dialFor(p), Clock: m.clock, ResponseTimeout: response, LookEvery: 7 * time.Second,
		Egress: func(netip.AddrPort) error { return nil },
	}
	p.sender, p.reads = upstream.New(c), upstream.NewPassthrough(c)
	var err error
	p.reconciler, err = reconcilers.New(reconcilers.Config{
		Ledger: p.ledger, Sender: p.sender, Credentials: credentials{}, Pinned: p.pinned, Clock: m.clock, NewID: m.newID,
		Settings: reconcilers.Settings{Base: 3 * time.Second, Cap: 30 * time.Second, Ask: 10 * time.Second},
		Random:   func() float64 { return 0.5 }, Log: zerolog.Nop(),
	})
	if err != nil {
		return err
	}
	p.proxy, err = proxy.New(proxy.Config{
		Ledger: p.ledger, Rules: m.rules, Pinned: p.pinned, Sender: p.sender, Reads: p.reads, Dial: m.dialFor(p),
		Inliner: p.reconciler, Turns: p.reconciler, Credentials: credentials{}, CA: m.ca, Clock: m.clock, NewID: m.newID, Log: zerolog.Nop(),
		Unmatched: proxy.PolicyDeny, Unmanaged: proxy.Unmanaged{Workflow: workflow, Item: looseItem},
	})
	if err != nil {
		return err
	}
	ctx, p.cancel = context.WithCancel(ctx)
	m.process = p
	p.running.Go(func() {
		if _, err := p.reconciler.Recover(ctx); err != nil {
			p.door.cut() // Nothing is started: it was killed again, or refuses.
			m.refuse(p, err)
			return
		}
		p.running.Go(func() { p.reconciler.Run(ctx) })
		_ = p.proxy.Serve(p.door) //nolint:contextcheck // A request ends with its connection.
	})
	return nil
}

// refuse notes that a life which nobody ended didn't begin.
func (m *machine) refuse(p *process, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !p.dead {
		m.refusals = append(m.refusals, "recovery failed: "+err.Error())
	}
}

// kill ends the program at once: nothing more is written or sent.
func (m *machine) kill() {
	m.mu.Lock()
	p := m.process
	if p == nil || p.dead {
		m.mu.Unlock()
		return
	}
	p.dead, m.process, m.armed = true, nil, nil
	m.crashes++
	m.store = m.store.Reopen(ledger.Process{ID: "nobody"})
	for c := range p.conns {
		_ = c.Close()
	}
	m.mu.Unlock()
	p.door.cut()
	p.cancel()
	m.ending.Go(func() {
		p.proxy.Close()
		p.running.Wait()
		p.reconciler.Close()
		p.sender.CloseIdle()
		p.reads.CloseIdle()
	})
}

// arm lets the next event wait for a commit or a write.
func (m *machine) arm(e event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armed, m.left = &e, e.count
}

// crashing counts commits and writes, and says which event is due, "" for none.
func (m *machine) crashing(at string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.armed == nil || (m.armed.kind == "kill at write") != (at == "write") {
		return ""
	}
	if m.left--; m.left > 0 {
		return ""
	}
	return m.armed.kind
}

// crash kills the program from within, and wakes who starts it again.
func (m *machine) crash() {
	m.mu.Lock()
	e := m.armed
	m.mu.Unlock()
	if e == nil {
		return
	}
	m.kill()
	m.crashed <- *e
}

// stored reads what is durable, also while the program is down: the records themselves.
func (m *machine) stored(fn func(stored) error) error {
	m.mu.Lock()
	store := m.store
	m.mu.Unlock()
	return store.Stored(func(v ledger.View, all []*ledger.Mutation) error { return fn(stored{v, all}) })
}

// stored is what is durable at one moment, with all records, the oldest first.
type stored struct {
	ledger.View
	all []*ledger.Mutation
}

var errDown = errors.New("the machine is down")

// dialFor connects a process to the API.
func (m *machine) dialFor(p *process) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if p.dead {
			return nil, errDown
		}
		ours, theirs := net.Pipe()
		there := &end{Conn: theirs}
		c := &wire{Conn: ours, there: there, machine: m}
		p.conns[c] = true
		m.api.serve(there)
		return c, nil
	}
}

// wire is a connection to the API at which the program can be killed.
type wire struct {
	net.Conn
	there   *end
	machine *machine
}

// end is the API's end of a connection.
type end struct {
	net.Conn
	closed atomic.Bool
}

// Close implements net.Conn.
func (e *end) Close() error {
	e.closed.Store(true)
	return e.Conn.Close()
}

// SyscallConn implements syscall.Conn: whoever looks whether an idle connection is quiet
// sees a pipe that is, or one that has ended.
func (w *wire) SyscallConn() (syscall.RawConn, error) { return looks{w}, nil }

// looks is what can be seen of a connection without waiting.
type looks struct{ w *wire }

// Read implements syscall.RawConn.
func (l looks) Read(f func(fd uintptr) bool) error {
	file := l.w.machine.quiet
	if l.w.there.closed.Load() {
		file = l.w.machine.ended
	}
	c, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return c.Read(f)
}

// Write implements syscall.RawConn.
func (looks) Write(func(fd uintptr) bool) error { return errDown }

// Control implements syscall.RawConn.
func (looks) Control(func(fd uintptr)) error { return errDown }

// Write implements net.Conn.
func (w *wire) Write(b []byte) (int, error) {
	if w.machine.crashing("write") == "" {
		return w.Conn.Write(b)
	}
	n, _ := w.Conn.Write(b[:len(b)/2])
	w.machine.crash()
	return n, net.ErrClosed
}

// RemoteAddr implements net.Conn.
func (*wire) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// door is the proxy's listener, in memory.
type door struct {
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
	mu    sync.Mutex
	open  []net.Conn
}

func newDoor() *door { return &door{conns: make(chan net.Conn), gone: make(chan struct{})} }

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.gone:
		return nil, http.ErrServerClosed
	}
}

// Close implements net.Listener.
func (d *door) Close() error { d.once.Do(func() { close(d.gone) }); return nil }

// Addr implements net.Listener.
func (*door) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// cut closes every connection, as the kernel does when a process is killed.
func (d *door) cut() {
	_ = d.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.open {
		_ = c.Close()
	}
}

// dial connects a client.
func (d *door) dial() (net.Conn, error) {
	theirs, ours := net.Pipe()
	select {
	case d.conns <- client{ours}:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.open = append(d.open, theirs)
		return theirs, nil
	case <-d.gone:
		return nil, errDown
	}
}

// client is the server's end of a client's connection.
type client struct{ net.Conn }

// RemoteAddr implements net.Conn.
func (client) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }
