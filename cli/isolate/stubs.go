package isolate

import (
	"context"
	"net"
	"net/netip"
)

type Names struct{}

func (*Names) Of(netip.Addr) (string, bool) { return "", false }

type Reach struct{}

func (*Reach) Target(context.Context, string, netip.AddrPort) string { return "" }
func (*Reach) Carry(context.Context, net.Conn, string) (a, b int64, err error) { return }

type Refusals struct{}

func (*Refusals) Note(network, target string) {}

func Agree(a, b string) bool { return a == b }
