// Package netns starts a command in a network namespace of its own, whose only ways out are listeners that its starter
// serves.
//
// Start executes this program again, as a stage, with CLONE_NEWUSER and CLONE_NEWNET. The stage raises the loopback
// interface and makes every address a local one. It opens the listeners of the Spec and passes them out. Then it drops
// every capability, sets no_new_privs and executes the command. Thus whatever the command connects to is one of the
// listeners, or is refused by the kernel at once.
//
// The ids of users and groups are the same inside. As root all ids of our own namespace are there. For any other user
// its own id alone is, and files of others look like nobody's.
//
// # Failure
//
// An *Error says what of the namespace can't be had; the command was not started then. Any other error is execve's. Check
// says beforehand whether a namespace can be had here. On other systems than Linux none can.
//
// # Caveats
//
// A program that calls Start must call Stage first of all, where IsStage says so.
//
// Files and Unix sockets stay reachable, and so does what the standard streams are. Abstract sockets of the host are not.
// Descriptors of other sockets are closed. The kernel keeps a command from ports on which a listener is.
package netns

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// Spec says where sockets are opened, each as host:port. Without a host it is any address. At most 250.
type Spec struct {
	TCP []string `json:"tcp"`
	UDP []string `json:"udp"`
}

// Network holds the sockets of a namespace, in the order of its Spec. Its starter serves them. A connection's local
// address is the one that the command connected to.
type Network struct {
	TCP []net.Listener
	UDP []*net.UDPConn
	// Packets has the IP packets by which the kernel refuses, and few others. A read of it doesn't wait.
	Packets *os.File
}

// Close closes all of it. What the command asks for then is refused.
func (n *Network) Close() {
	for _, l := range n.TCP {
		_ = l.Close()
	}
	for _, c := range n.UDP {
		_ = c.Close()
	}
	_ = n.Packets.Close()
}

// Error says what of a namespace can't be had.
type Error struct {
	// What was tried.
	What string
	Err  error
}

// Error names the cause that can be mended, where there is one.
func (e *Error) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("no network namespace can be had here: %s: %v; %s", e.What, e.Err, e.Fix()), "; ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// stageName is the stage's argv[0].
const stageName = "keep-proxy-netns"

// IsStage reports whether this process is a stage.
func IsStage() bool { return os.Args[0] == stageName }
