package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"keep-proxy/config"
)

// taken says which process has a port, where that can be found out.
func taken(err error, address string) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	_, port, splitErr := net.SplitHostPort(address)
	number, parseErr := strconv.ParseUint(port, 10, 16)
	if splitErr != nil || parseErr != nil {
		return err
	}
	if who := listenerOf(uint16(number)); who != "" {
		return fmt.Errorf("%w: taken by %s", err, who)
	}
	return fmt.Errorf("%w: taken by another process", err)
}

// listenerOf names the process that listens on a TCP port. It is empty where that can't be seen (another user's, or a
// system without /proc).
func listenerOf(port uint16) string {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		inode := listeningInode(table, port)
		if inode == "" {
			continue
		}
		if who := processOfSocket("socket:[" + inode + "]"); who != "" {
			return who
		}
	}
	return ""
}

// listening is the state TCP_LISTEN in /proc/net/tcp.
const listening = "0A"

func listeningInode(table string, port uint16) string {
	f, err := os.Open(table)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	suffix := fmt.Sprintf(":%04X", port)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[1], suffix) && fields[3] == listening {
			return fields[9]
		}
	}
	return ""
}

func processOfSocket(link string) string {
	descriptors, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, d := range descriptors {
		if target, err := os.Readlink(d); err != nil || target != link {
			continue
		}
		process := filepath.Dir(filepath.Dir(d))
		name, err := os.ReadFile(filepath.Join(process, "comm"))
		if err != nil {
			return "process " + filepath.Base(process)
		}
		return strings.TrimSpace(string(name)) + " (process " + filepath.Base(process) + ")"
	}
	return ""
}

// CanListen tries each address of the configuration, and closes it again.
func CanListen(ctx context.Context, c config.Config) error {
	for _, address := range append(slices.Clone(c.Proxy.Listen), c.Admin.Listen, c.Admin.HealthListen) {
		if address == "" || strings.HasPrefix(address, "unix:") {
			continue // One that is left over is replaced at start.
		}
		l, err := listenAt(ctx, address)
		if err != nil {
			return taken(err, address)
		}
		_ = l.Close()
	}
	return nil
}
