package app

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"keep-proxy/config"
)

// clientCertificates finds the certificate for the upstream at host:port that asks for one:
// the first whose host fits. Files are read at each handshake, as they rotate; one that can't be
// read ends the handshake, and nothing is sent.
func clientCertificates(list []config.ClientCert) func(addr string) (*tls.Certificate, error) {
	if len(list) == 0 {
		return nil
	}
	return func(addr string) (*tls.Certificate, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			if !parseDestination(c.Host).fits(strings.ToLower(host), literal(host, port)) {
				continue
			}
			pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("proxy.client_certs of %s: %w", c.Host, err)
			}
			return &pair, nil
		}
		return nil, nil
	}
}

// literal is the port, at the address that a host is, if it is one.
func literal(host, port string) netip.AddrPort {
	a, _ := netip.ParseAddr(host) // Else the zero one, which no prefix contains.
	return netip.AddrPortFrom(a.Unmap(), portNumber(port))
}
