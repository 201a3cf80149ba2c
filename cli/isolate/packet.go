package isolate

import (
	"encoding/binary"
	"net/netip"
)

// packetBytes is how much of a packet is read: two IPv4 headers of full length, with what follows them.
const packetBytes = 192

const icmp, tcp, udp, icmp6 = 1, 6, 17, 58

// refused reads from an IP packet what it refuses. The network is empty if it refuses nothing.
//   - TCP answers a SYN to a port without a listener by RST|ACK with sequence number 0. No other reset has all this.
//   - The kernel answers a datagram by "port unreachable", with the datagram's headers. One from port 53 is the run's
//     own answer: the command had stopped waiting for it.
//
// A command can send no echo. A raw socket needs CAP_NET_RAW. A ping socket needs a group of
// net.ipv4.ping_group_range, and in a new namespace that has none.
func refused(p []byte) (network string, target netip.AddrPort) {
	protocol, source, _, rest := header(p)
	switch {
	case protocol == tcp && len(rest) >= 20 && rest[13]&0x16 == 0x14 && binary.BigEndian.Uint32(rest[4:]) == 0:
		return "tcp", netip.AddrPortFrom(source, binary.BigEndian.Uint16(rest))
	case len(rest) >= 8 && (protocol == icmp && rest[0] == 3 && rest[1] == 3 || protocol == icmp6 && rest[0] == 1 && rest[1] == 4):
		protocol, _, destination, rest := header(rest[8:])
		if protocol == udp && len(rest) >= 8 && binary.BigEndian.Uint16(rest) != 53 {
			return "udp", netip.AddrPortFrom(destination, binary.BigEndian.Uint16(rest[2:]))
		}
	}
	return "", netip.AddrPort{}
}

// header reads an IP header; protocol 0 if there is none, or no ports follow it. IPv6 extension headers aren't followed.
func header(p []byte) (protocol byte, source, destination netip.Addr, rest []byte) {
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		n := max(20, int(p[0]&15)*4)
		if n <= len(p) && binary.BigEndian.Uint16(p[6:])&0x1fff == 0 { // The first fragment, or whole.
			return p[9], netip.AddrFrom4([4]byte(p[12:])), netip.AddrFrom4([4]byte(p[16:])), p[n:]
		}
	case len(p) >= 40 && p[0]>>4 == 6:
		return p[6], netip.AddrFrom16([16]byte(p[8:])), netip.AddrFrom16([16]byte(p[24:])), p[40:]
	}
	return 0, source, destination, nil
}
