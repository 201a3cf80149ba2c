package isolate

import (
	"context"
	"net"
	"net/netip"
	"os"
)

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

func (*Reach) Names(name string) bool { return false }
