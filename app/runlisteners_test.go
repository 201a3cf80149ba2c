package app

import (
	"net"
	"testing"

	"keep-proxy/config"
)

// A run's own listener is never dialled; once it is closed its port may be another program's.
func TestTheAddressOfAClosedListenerIsOursNoMore(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*runListeners){
		"its run has ended": func(r *runListeners) { r.CloseListener("a") },
		"all are closed":    (*runListeners).close,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &runListeners{egress: newEgress(config.Egress{}), open: map[string]net.Listener{}}
			for _, digest := range []string{"a", "b"} {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = l.Close() }()
				r.egress.protect(l.Addr())
				r.open[digest] = l
			}
			address := r.open["a"].Addr().(*net.TCPAddr).AddrPort()
			if err := r.egress.check("127.0.0.1", address); err == nil {
				t.Error("a listener of our own may be dialled")
			}
			end(r)
			if err := r.egress.check("127.0.0.1", address); err != nil {
				t.Errorf("after it was closed: %v", err)
			}
			if l, open := r.open["b"]; open && r.egress.check("127.0.0.1", l.Addr().(*net.TCPAddr).AddrPort()) == nil {
				t.Error("the listener of another run may be dialled")
			}
		})
	}
}

// A program that is part of another serves the processes of its own machine: a run's listener,
// which asks for no credentials, isn't opened to others by a configuration that is a sidecar's.
func TestAnEmbeddedProgramOpensNoRunsListenerToOthers(t *testing.T) {
	t.Parallel()
	for configured, want := range map[string]string{
		"0.0.0.0:0": "127.0.0.1:0", "0.0.0.0:9000": "127.0.0.1:9000", "[::]:0": "127.0.0.1:0", "[::ffff:0.0.0.0]:0": "127.0.0.1:0",
		"127.0.0.1:0": "127.0.0.1:0", "172.17.0.1:0": "172.17.0.1:0", "localhost:9000": "localhost:9000",
	} {
		c := config.Default()
		c.Proxy.RunListen = configured
		if got := Embedded(c).Proxy.RunListen; got != want {
			t.Errorf("%s becomes %s, want %s", configured, got, want)
		}
	}
}
