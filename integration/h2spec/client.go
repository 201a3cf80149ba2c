package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/summerwind/h2spec/client"
	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/spec"
)

// The two ways in which keep-proxy asks an upstream: as it reads, and as it sends a
// mutation.
const (
	asRead     = "read"
	asMutation = "mutation"
)

// tryClient has an upstream of h2spec's answer each of its cases for clients, asked
// through the proxy.
func tryClient(proxy *url.URL, roots string, leaf tls.Certificate) (all cases, err error) {
	ca, err := os.ReadFile(roots)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	script := &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted}},
	}
	var wg sync.WaitGroup
	room := make(chan struct{}, 16) // Most cases wait for what mustn't come.
	for way, method := range map[string]string{asRead: http.MethodGet, asMutation: http.MethodDelete} {
		for _, c := range clientCases(client.Spec()) {
			t := &tried{section: way + "/" + c.Parent.Section, name: c.Desc}
			all = append(all, t)
			wg.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				err := tryCase(c, script, method, leaf)
				t.skipped = errors.Is(err, spec.ErrSkipped)
				t.failed = err != nil && !t.skipped
			})
		}
	}
	wg.Wait()
	return all, nil
}

// clientCases are the cases of a group and of those in it.
func clientCases(g *spec.ClientTestGroup) []*spec.ClientTestCase {
	all := g.Tests
	for _, inner := range g.Groups {
		all = append(all, clientCases(inner)...)
	}
	return all
}

// tryCase asks one upstream once, and returns what the case found.
func tryCase(c *spec.ClientTestCase, script *http.Client, method string, leaf tls.Certificate) error {
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{leaf}, NextProtos: []string{"h2"}})
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	said := make(chan error, 1)
	go func() { said <- serveCase(c, l) }()
	r, err := http.NewRequest(method, "https://"+l.Addr().String()+"/", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := script.Do(r)
	if err == nil {
		// What the script is told is judged elsewhere.
		_ = resp.Body.Close()
	}
	return <-said
}

func serveCase(c *spec.ClientTestCase, l net.Listener) error {
	base, err := l.Accept()
	if err != nil {
		return err
	}
	defer func() { _ = base.Close() }()
	settings := &config.Config{Host: "127.0.0.1", Path: "/", Timeout: 5 * time.Second, MaxHeaderLen: 4000, TLS: true, Strict: true}
	conn, err := spec.Accept(settings, base)
	if err != nil {
		return err
	}
	return c.Run(settings, conn)
}
