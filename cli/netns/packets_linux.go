package netns

import (
	"encoding/binary"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// refusing passes arriving ICMP, and TCP with sequence number 0, which others than refusals have only by chance. Each
// byte of the command crosses lo twice, so the kernel drops all else. Jumps lead to the last two lines.
var refusing = []bpf.Instruction{
	bpf.LoadExtension{Num: bpf.ExtType}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PACKET_HOST, SkipTrue: 13},
	bpf.LoadAbsolute{Off: 0, Size: 1}, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: 6 << 4, SkipTrue: 3},
	bpf.LoadMemShift{Off: 0}, bpf.LoadAbsolute{Off: 9, Size: 1}, bpf.Jump{Skip: 2}, // IPv4.
	bpf.LoadConstant{Dst: bpf.RegX, Val: 40}, bpf.LoadAbsolute{Off: 6, Size: 1}, // IPv6.
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_ICMP, SkipTrue: 4},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_ICMPV6, SkipTrue: 3},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_TCP, SkipTrue: 3},
	bpf.LoadIndirect{Off: 4, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
	bpf.RetConstant{Val: 256},
	bpf.RetConstant{Val: 0},
}

// openPackets opens the socket of Network.Packets. Its filter is there before it is bound, so that nothing else is queued.
func openPackets() (int, error) {
	filter, err := bpf.Assemble(refusing)
	if err != nil {
		return 0, err
	}
	var code []unix.SockFilter
	for _, f := range filter {
		code = append(code, unix.SockFilter{Code: f.Op, Jt: f.Jt, Jf: f.Jf, K: f.K})
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<20)          // As much as the system allows.
	_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1) // Linux 4.20. It spares a copy of each packet.
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]})
	if err != nil {
		return fd, err
	}
	all := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL})
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: loopback})
}
