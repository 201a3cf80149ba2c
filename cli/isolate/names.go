package isolate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"sync"
)

// Names gives each name one address of each family, and finds the name of an address again. Safe for concurrent use.
type Names struct {
	exists func(ctx context.Context, name string) (bool, error)
	mu     sync.Mutex
	addrs  map[string][2]netip.Addr // by name, and by the names that PTR queries have for the addresses
	names  map[netip.Addr]string
}

// NewNames makes the names of a run. A name that exists outside gets addresses, and keeps them.
func NewNames(exists func(ctx context.Context, name string) (bool, error)) *Names {
	return &Names{exists: exists, addrs: map[string][2]netip.Addr{}, names: map[netip.Addr]string{}}
}

// Of finds the name that an address stands for. A real address stands for none, "".
func (n *Names) Of(addr netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.names[addr.Unmap()]
}

// addresses finds the addresses of a name, unless it doesn't exist. New ones are the next of 198.18.0.0/15 and
// 2001:2::/48: no host has those, as they are for benchmarks. The second of a range is the namespace's own.
func (n *Names) addresses(ctx context.Context, name string) (addrs [2]netip.Addr, ok bool, err error) {
	name, valid := hostName(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if addrs, ok = n.addrs[name]; ok || !valid {
		return addrs, ok, nil
	}
	n.mu.Unlock()
	found, err := n.exists(ctx, name)
	n.mu.Lock()
	number := 2 + len(n.names)/2
	switch addrs, ok = n.addrs[name]; {
	case ok || err != nil || !found: // it may have been given meanwhile
		return addrs, ok, err
	case number >= 1<<17:
		return addrs, false, errors.New("each address stands for a name already")
	}
	four := [4]byte{198, 18 + byte(number>>16), byte(number >> 8), byte(number)}
	six := [16]byte{0x20, 1, 0, 2, 13: byte(number >> 16), byte(number >> 8), byte(number)}
	addrs = [2]netip.Addr{netip.AddrFrom4(four), netip.AddrFrom16(six)}
	n.addrs[name], n.names[addrs[0]], n.names[addrs[1]] = addrs, name, name
	n.addrs[fmt.Sprintf("%d.%d.%d.198.in-addr.arpa", four[3], four[2], four[1])] = addrs
	n.addrs[fmt.Sprintf("%x.%x.%x.%x.%x.", number&15, number>>4&15, number>>8&15, number>>12&15, number>>16)+
		strings.Repeat("0.", 19)+"2.0.0.0.1.0.0.2.ip6.arpa"] = addrs
	return addrs, true, nil
}

var hosts = regexp.MustCompile(`^([\w-]+\.)*\d*[A-Za-z_-][\w-]*\.?$`)

// hostName is a name in lower case, without the dot at its end. It reports whether a host may be called so: the name is
// no address, and fits into a request.
func hostName(name string) (string, bool) {
	return strings.ToLower(strings.TrimSuffix(name, ".")), hosts.MatchString(name)
}
