package isolate

import (
	"context"
	"net"
	"net/netip"
	"os"
)

type Names struct{}

func NewNames(exists func(ctx context.Context, name string) (bool, error)) *Names { return nil }

func (*Names) Of(netip.Addr) (string, bool) { return "", false }

func (n *Names) ServePackets(ctx context.Context, c *net.UDPConn) error { return nil }
func (n *Names) ServeStreams(ctx context.Context, l net.Listener) error { return nil }

type Reach struct{}

func NewReach(targets []string, dial func(ctx context.Context, network, address string) (net.Conn, error), resolve func(ctx context.Context, host string) ([]netip.Addr, error)) (*Reach, error) {
	return &Reach{}, nil
}
func (*Reach) Target(context.Context, string, netip.AddrPort) string { return "" }
func (*Reach) Ports() []uint16                                       { return nil }
func (*Reach) Carry(context.Context, net.Conn, string) (a, b int64, err error) {
	return
}

type Refusal struct {
	Network, Target string
	Count           int
}

type Refusals struct{}

func (*Refusals) Note(network, target string)  {}
func (*Refusals) Watch(packets *os.File) error { return nil }
func (*Refusals) Close() error                 { return nil }
func (*Refusals) List() []Refusal              { return nil }

func Agree(a, b string) bool { return a == b }

func (*Reach) Names(name string) bool { return false }
