package netns

import (
	"errors"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// loopback is the loopback interface's index, the first of every namespace.
const loopback = 1

// network is one family's: an address for the loopback interface, and every address there is.
type network struct{ own, every string }

// networks give the loopback interface addresses besides 127.0.0.1 and ::1. Without one that is no loopback address,
// resolvers leave a family out (AI_ADDRCONFIG). They are in the ranges for benchmarks (RFC 2544, RFC 5180), as are those of
// names.
var networks = []network{{"198.18.0.1/32", "0.0.0.0/0"}, {"2001:2::1/128", "::/0"}}

// raise raises the loopback interface, and makes every address one of this namespace.
func raise() error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return &Error{"raise the loopback interface", err}
	}
	for i, n := range networks {
		if has, _ := os.ReadFile("/proc/self/net/if_inet6"); i > 0 && len(has) == 0 {
			break // No interface has an address of IPv6: the kernel lacks it, or ipv6.disable_ipv6 is set.
		}
		address, err := netlink.ParseAddr(n.own)
		if err != nil {
			return &Error{"add " + n.own, err}
		}
		address.Flags = unix.IFA_F_NODAD
		_, every, err := net.ParseCIDR(n.every)
		err = errors.Join(err, netlink.AddrAdd(lo, address), netlink.RouteAdd(&netlink.Route{
			LinkIndex: loopback, Dst: every, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST, Type: unix.RTN_LOCAL,
		}))
		if err != nil {
			return &Error{"make every address a local one", err}
		}
	}
	return nil
}
