package netns

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loopback is the loopback interface's index, the first of every namespace.
const loopback = 1

// ownAddresses are the interface's besides 127.0.0.1 and ::1. Without one that is no loopback address, resolvers leave
// a family out (AI_ADDRCONFIG). They are in the ranges for benchmarks (RFC 2544, RFC 5180), as are those of names.
var ownAddresses = []netip.Addr{netip.MustParseAddr("198.18.0.1"), netip.MustParseAddr("2001:2::1")}

// raise raises the loopback interface, and makes every address one of this namespace.
func raise() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return &Error{"open a socket", err}
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return &Error{"raise the loopback interface", err}
	}
	for _, own := range ownAddresses {
		if own.Is6() && !hasIPv6() {
			continue
		}
		if err := addAddress(own); err != nil {
			return &Error{"add " + own.String(), err}
		}
		if err := addRoute(own); err != nil {
			return &Error{"add the route of every address", err}
		}
	}
	return nil
}

// hasIPv6 reports whether the kernel has it.
func hasIPv6() bool {
	_, err := os.Stat("/proc/self/net/if_inet6")
	return err == nil
}

// addAddress gives the loopback interface an address (ip address add ADDRESS dev lo).
func addAddress(a netip.Addr) error {
	body := unix.IfAddrmsg{Family: family(a), Prefixlen: uint8(a.BitLen()), Flags: unix.IFA_F_NODAD, Index: loopback}
	return request(unix.RTM_NEWADDR, bytesOf(&body), attribute(unix.IFA_LOCAL, a.AsSlice()), attribute(unix.IFA_ADDRESS, a.AsSlice()))
}

// addRoute makes every address of a's family a local one (ip route add local default dev lo).
func addRoute(a netip.Addr) error {
	body := unix.RtMsg{
		Family: family(a), Table: unix.RT_TABLE_LOCAL, Protocol: unix.RTPROT_BOOT, Scope: unix.RT_SCOPE_HOST, Type: unix.RTN_LOCAL,
	}
	return request(unix.RTM_NEWROUTE, bytesOf(&body), attribute(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, loopback)))
}

func family(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// bytesOf is a structure as the kernel reads it.
func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) } //nolint:gosec // fixed layouts

// attribute is one of a request's (struct rtattr), whose length here is a multiple of its alignment.
func attribute(kind uint16, value []byte) []byte {
	head := unix.RtAttr{Len: uint16(unix.SizeofRtAttr + len(value)), Type: kind}
	return append(append([]byte{}, bytesOf(&head)...), value...)
}

// request asks the kernel's routing for something new (rtnetlink(7)), and waits for its answer.
func request(kind uint16, parts ...[]byte) error {
	var body []byte
	for _, p := range parts {
		body = append(body, p...)
	}
	head := unix.NlMsghdr{
		Len: uint32(unix.SizeofNlMsghdr + len(body)), Type: kind,
		Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE, Seq: 1,
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, append(append([]byte{}, bytesOf(&head)...), body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	messages, err := syscall.ParseNetlinkMessage(answer[:n])
	if err != nil {
		return err
	}
	if len(messages) == 0 || messages[0].Header.Type != unix.NLMSG_ERROR || len(messages[0].Data) < 4 {
		return errors.New("the kernel gave no answer")
	}
	if code := int32(binary.NativeEndian.Uint32(messages[0].Data)); code != 0 {
		return syscall.Errno(-code)
	}
	return nil
}
