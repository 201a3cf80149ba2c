package app

import (
	"crypto/tls"
	"fmt"
	"net/netip"
	"strings"

	"keep-proxy/config"
)

// clientCertificates finds the certificate for a host that asks for one: the first
// whose host fits. Files are read at each handshake, as they rotate; one that can't be
// read ends the handshake, and nothing is sent.
func clientCertificates(list []config.ClientCert) func(host string) (*tls.Certificate, error) {
	if len(list) == 0 {
		return nil
	}
	return func(host string) (*tls.Certificate, error) {
		for _, c := range list {
			if !parseDestination(c.Host).fits(strings.ToLower(host), literal(host)) {
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

// literal is the address that a host is, if it is one.
func literal(host string) netip.AddrPort {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Unmap(), 0)
}
