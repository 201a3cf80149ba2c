package isolate

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
)

// packet4 is an IPv4 packet from 10.1.2.3 to 10.0.0.2, with options of IP if there are any.
func packet4(protocol byte, rest []byte, options ...byte) []byte {
	p := make([]byte, 20)
	p[0], p[9] = byte(4<<4|(20+len(options))/4), protocol
	copy(p[12:], []byte{10, 1, 2, 3, 10, 0, 0, 2})
	return slices.Concat(p, options, rest)
}

// packet6 is an IPv6 packet from 2001:db8::1 to 2001:db8::2.
func packet6(protocol byte, rest []byte) []byte {
	p := make([]byte, 40)
	p[0], p[6] = 6<<4, protocol
	from, to := netip.MustParseAddr("2001:db8::1").As16(), netip.MustParseAddr("2001:db8::2").As16()
	copy(p[8:], from[:])
	copy(p[24:], to[:])
	return slices.Concat(p, rest)
}

// segment is a TCP header.
func segment(flags byte, sequence uint32) []byte {
	s := make([]byte, 20)
	binary.BigEndian.PutUint16(s, 5432)
	binary.BigEndian.PutUint16(s[2:], 40000)
	binary.BigEndian.PutUint32(s[4:], sequence)
	s[13] = flags
	return s
}

// datagram is a UDP header.
func datagram(from, to uint16) []byte {
	d := binary.BigEndian.AppendUint16(nil, from)
	return append(binary.BigEndian.AppendUint16(d, to), 0, 9, 0, 0)
}

// failure is an ICMP error about a packet.
func failure(kind, code byte, about []byte) []byte {
	return append([]byte{kind, code, 0, 0, 0, 0, 0, 0}, about...)
}

func TestRefusedReadsWhatAPacketRefuses(t *testing.T) {
	const syn, rst, ack, psh = 0x02, 0x04, 0x10, 0x08
	later := packet4(tcp, segment(rst|ack, 0))
	later[7] = 1
	for _, c := range []struct {
		name   string
		packet []byte
		want   string
	}{
		{"a connection", packet4(tcp, segment(rst|ack, 0)), "tcp 10.1.2.3:5432"},
		{"a connection, with IP options", packet4(tcp, segment(rst|ack, 0), 1, 1, 1, 1, 1, 1, 1, 1), "tcp 10.1.2.3:5432"},
		{"a connection over IPv6", packet6(tcp, segment(rst|ack, 0)), "tcp [2001:db8::1]:5432"},
		{"a datagram", packet4(icmp, failure(3, 3, packet4(udp, datagram(40000, 443)))), "udp 10.0.0.2:443"},
		{"a datagram with IP options", packet4(icmp, failure(3, 3, packet4(udp, datagram(40000, 443), 1, 1, 1, 1)), 1, 1, 1, 1), "udp 10.0.0.2:443"},
		{"a datagram over IPv6", packet6(icmp6, failure(1, 4, packet6(udp, datagram(40000, 443)))), "udp [2001:db8::2]:443"},

		{"nothing by a reset of a connection", packet4(tcp, segment(rst|ack, 1)), ""},
		{"nothing by a reset without ACK", packet4(tcp, segment(rst, 0)), ""},
		{"nothing by a reset with SYN", packet4(tcp, segment(rst|ack|syn, 0)), ""},
		{"nothing by data", packet4(tcp, segment(ack|psh, 0)), ""},
		{"nothing by a later fragment", later, ""},
		{"nothing by a cut segment", packet4(tcp, segment(rst|ack, 0)[:19]), ""},
		{"nothing by a longer IP header than there is", packet4(tcp, nil, 1, 1, 1, 1)[:20], ""},
		{"nothing to an answer of DNS", packet4(icmp, failure(3, 3, packet4(udp, datagram(53, 40000)))), ""},
		{"nothing by another ICMP error", packet4(icmp, failure(3, 4, packet4(udp, datagram(40000, 443)))), ""},
		{"nothing by another ICMPv6 error", packet6(icmp6, failure(1, 3, packet6(udp, datagram(40000, 443)))), ""},
		{"nothing by ICMPv6 within IPv4", packet4(icmp6, failure(3, 3, packet4(udp, datagram(40000, 443)))), ""},
		{"nothing by ICMP about TCP", packet4(icmp, failure(3, 3, packet4(tcp, segment(syn, 7)))), ""},
		{"nothing by ICMP about half a header", packet4(icmp, failure(3, 3, packet4(udp, datagram(40000, 443)[:7]))), ""},
		{"nothing by ICMP about nothing", packet4(icmp, failure(3, 3, nil)), ""},
		{"nothing by half of ICMP", packet4(icmp, []byte{3, 3}), ""},
		{"nothing by another version of IP", append([]byte{5 << 4}, make([]byte, 60)...), ""},
		{"nothing by nothing", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			network, target := refused(c.packet)
			got := ""
			if network != "" {
				got = network + " " + target.String()
			}
			if got != c.want {
				t.Errorf("refused %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzRefused: what is refused has a known network and an address.
func FuzzRefused(f *testing.F) {
	f.Add(packet4(tcp, segment(0x14, 0), 1, 1, 1, 1))
	f.Add(packet6(tcp, segment(0x14, 0)))
	f.Add(packet4(icmp, failure(3, 3, packet4(udp, datagram(1, 443)))))
	f.Add(packet6(icmp6, failure(1, 4, packet6(udp, datagram(1, 443)))))
	f.Fuzz(func(t *testing.T, p []byte) {
		network, target := refused(p)
		if (network == "tcp" || network == "udp") != target.IsValid() || network == "" != (target == netip.AddrPort{}) {
			t.Errorf("refused %q %v", network, target)
		}
	})
}
