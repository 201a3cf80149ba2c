package doctor

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds each step towards the proxy, reach each try to get past it.
const (
	patience = 10 * time.Second
	reach    = 3 * time.Second
)

// probeHost can't exist (RFC 6761 §6.4). What is asked of it through the proxy ends there, after the proxy has shown
// its certificate.
const probeHost = "doctor.keep-proxy.invalid"

// Sandbox is a client's place, as its environment describes it.
type Sandbox struct {
	// Getenv reads a variable of the environment.
	Getenv func(string) string
	// Interfaces lists those of the network; nil if they can't be listed.
	Interfaces func() ([]net.Interface, error)
	// Targets are host:port which must not be reached but through the proxy.
	Targets []string
	// TokenFiles are files that must not be readable in here.
	TokenFiles []string
	// HostToken is the file of a token that a script in here finds by its environment; empty
	// for none.
	HostToken string
	// Admin is the host:port, or unix:/path, of an admin API that should not be reachable from here. If it is empty,
	// no API is examined.
	Admin string
	// AdminGuessed says that nothing in here tells whether the API is there.
	AdminGuessed bool
	// Unknown says why token and API can't be looked for in here, nil if they can.
	Unknown error
}

// Examine looks at the sandbox from inside.
func (s Sandbox) Examine(ctx context.Context) []Finding {
	findings := []Finding{s.variables()}
	proxy, err := url.Parse(s.Getenv("HTTPS_PROXY"))
	if findings[0].Verdict == Broken || err != nil || proxy.Host == "" {
		return findings
	}
	findings = append(findings, s.through(ctx, proxy)...)
	alone := s.alone()
	findings = append(findings, s.detours(ctx, alone), credentials(proxy))
	if proxy.User != nil {
		findings = append(findings, s.without(ctx, proxy))
	}
	for _, target := range s.Targets {
		findings = append(findings, s.past(ctx, target, alone))
	}
	switch {
	case alone:
		findings = append(findings, sound(around, "no interface is up but loopback: nothing leaves by the network, except through what listens in here"))
	case len(s.Targets) == 0:
		findings = append(findings, unknown(around, "not tried", "name hosts that must not be reached directly with --target"))
	}
	if s.Unknown != nil {
		return append(findings, unknown(tokenName, "where it lies isn't known in here: "+s.Unknown.Error(),
			"name the proxy's folder with --data-dir, and its API with --admin"))
	}
	for _, file := range s.TokenFiles {
		findings = append(findings, hidden(file))
	}
	if s.HostToken != "" {
		findings = append(findings, handed(s.HostToken))
	}
	if s.Admin != "" {
		findings = append(findings, s.admin(ctx, alone))
	}
	return findings
}

const around = "a way around"

// alone reports whether the network leads nowhere, as that of run --isolate. Interfaces that are down don't count: tunnels
// are in every network.
func (s Sandbox) alone() bool {
	if s.Interfaces == nil {
		return false
	}
	all, err := s.Interfaces()
	return err == nil && len(all) > 0 && !slices.ContainsFunc(all, func(i net.Interface) bool { return i.Flags&(net.FlagUp|net.FlagLoopback) == net.FlagUp })
}

// variables wants the proxy in every spelling that clients read, and no exceptions.
func (s Sandbox) variables() Finding {
	const name = "variables"
	first := s.Getenv("HTTPS_PROXY")
	if first == "" {
		return broken(name, "HTTPS_PROXY isn't set: nothing goes through keep-proxy",
			"start the command with keep-proxy run, or set the variables of keep-proxy env")
	}
	for _, other := range []string{"https_proxy", "HTTP_PROXY", "http_proxy"} {
		if got := s.Getenv(other); got != first {
			return broken(name, other+" differs from HTTPS_PROXY: clients differ in which they read", "set all to the same")
		}
	}
	for _, exception := range []string{"NO_PROXY", "no_proxy"} {
		if s.Getenv(exception) != "" {
			return broken(name, exception+" isn't empty: what it names doesn't come to the proxy", "unset it, or set it to nothing")
		}
	}
	return sound(name, "proxy set in every spelling, no exceptions")
}

// through opens a tunnel as a client does, and looks at the certificate inside.
func (s Sandbox) through(ctx context.Context, proxy *url.URL) []Finding {
	conn, status, err := tunnel(ctx, proxy)
	switch {
	case conn == nil:
		return []Finding{broken("proxy", err.Error(), "start keep-proxy serve, or let the sandbox's network reach it (proxy.advertise)")}
	case err != nil:
		return []Finding{broken("proxy", err.Error(), "is it keep-proxy that listens at "+proxy.Host+"?")}
	}
	defer func() { _ = conn.Close() }()
	switch status {
	case http.StatusOK:
	case http.StatusProxyAuthRequired:
		return []Finding{broken("proxy", "it doesn't know the credentials in HTTPS_PROXY", "open a run: keep-proxy run, or keep-proxy env")}
	default:
		return []Finding{broken("proxy", fmt.Sprintf("CONNECT was answered with %d", status), "is it keep-proxy that listens at "+proxy.Host+"?")}
	}
	findings := []Finding{sound("proxy", proxy.Host+" takes our credentials")}
	file := s.Getenv("SSL_CERT_FILE")
	text, err := os.ReadFile(file)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(text) {
		return append(findings, broken("CA", fmt.Sprintf("SSL_CERT_FILE names %q, which has no certificate that can be read here", file),
			"let the sandbox see the file (proxy.ca.bundle_out)"))
	}
	secure := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: probeHost, MinVersion: tls.VersionTLS12})
	if err := secure.HandshakeContext(ctx); err != nil {
		return append(findings, broken("CA", "the proxy's certificate isn't trusted: "+err.Error(),
			"write ca-bundle.pem of the data folder anew, and let the sandbox see it"))
	}
	return append(findings, sound("CA", file+" trusts the proxy"), s.roots(secure.ConnectionState().PeerCertificates))
}

// credentials says for which clients the run's address is no use.
func credentials(proxy *url.URL) Finding {
	const name = "clients without credentials"
	if proxy.User == nil {
		return sound(name, "the proxy takes requests without any here, as browsers and Java send them")
	}
	return sound(name, "the address here holds credentials; for browsers and Java, which send none, open the run with --listener")
}

// without tries to use the proxy as nobody. Where nobody has a scope (proxy.unmanaged), a script can go on without
// credentials after its run's end.
func (s Sandbox) without(ctx context.Context, proxy *url.URL) Finding {
	const name = "without the run"
	conn, status, err := tunnel(ctx, &url.URL{Host: proxy.Host})
	if conn != nil {
		_ = conn.Close()
	}
	switch {
	case err != nil:
		return unknown(name, "without credentials: "+err.Error(), "see what is said of the proxy")
	case status == http.StatusProxyAuthRequired:
		return sound(name, "the proxy takes nothing without its credentials")
	case s.isOurs(ctx, proxy.Host):
		return sound(name, proxy.Host+" is this run's alone: what comes without credentials is this run's, too")
	}
	return broken(name, fmt.Sprintf("the proxy takes requests without credentials too (%d): a script whose run was stopped could go on", status),
		"leave proxy.unmanaged out, or give this sandbox a proxy without it")
}

// isOurs reports whether a request without credentials is this run's. A refusal says whose it is.
func (s Sandbox) isOurs(ctx context.Context, proxy string) bool {
	r := (&http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: probeHost}}).WithContext(ctx)
	client := &http.Client{Timeout: patience, Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy}), DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	var refusal struct {
		Run string `json:"run"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&refusal)
	return err == nil && refusal.Run != "" && refusal.Run == s.Getenv("KEEP_RUN_ID")
}

// tunnel asks a proxy for a tunnel. The connection is nil if there is none.
func tunnel(ctx context.Context, proxy *url.URL) (conn net.Conn, status int, err error) {
	if conn, err = (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", proxy.Host); err != nil {
		return nil, 0, err
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	r := &http.Request{Method: http.MethodConnect, Host: probeHost + ":443", URL: &url.URL{Host: probeHost + ":443"}, Header: http.Header{}}
	if proxy.User != nil {
		password, _ := proxy.User.Password()
		r.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password)))
	}
	var resp *http.Response
	if err = r.Write(conn); err == nil {
		resp, err = http.ReadResponse(bufio.NewReader(conn), r) //nolint:bodyclose // The body of a tunnel's answer is the tunnel itself.
	}
	if err != nil {
		return conn, 0, fmt.Errorf("no answer to CONNECT: %w", err)
	}
	return conn, resp.StatusCode, nil
}

// past tries to connect to a target directly. In a network that leads nowhere a connection is one to run.
func (s Sandbox) past(ctx context.Context, target string, alone bool) Finding {
	name := "around to " + target
	conn, err := (&net.Dialer{Timeout: reach}).DialContext(ctx, "tcp", target)
	if err == nil {
		_ = conn.Close()
		if alone {
			return sound(name, "run takes the connection: it is the proxy's, unless --reach or isolate.reach names it")
		}
		return broken(name, "it can be reached without the proxy: a client that ignores the variables is neither recorded nor stopped",
			"let the sandbox's network reach nothing but the proxy")
	}
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
		return sound(name, "its name can't even be looked up here")
	}
	return sound(name, "no connection: "+err.Error())
}

// tokenName is how the operator's token is called.
const tokenName = "operator's token"

// hidden wants a file not to be readable here. One that isn't here at all may be elsewhere.
func hidden(file string) Finding {
	switch err := unix.Access(file, unix.R_OK); {
	case errors.Is(err, fs.ErrNotExist):
		return unknown(tokenName, file+" isn't in here; that is sound if it is where the proxy keeps its token",
			"name the proxy's folder with --data-dir, if it is another")
	case err != nil:
		return sound(tokenName, file+" can't be read in here")
	}
	return broken(tokenName, file+" can be read in here: a script could answer its own unknowns",
		"run the command as another user (keep-proxy run --user), or in a sandbox that doesn't see the file")
}

// handed tells of a token that the environment names. Its role isn't known here.
func handed(file string) Finding {
	const name = "token of the environment"
	if unix.Access(file, unix.R_OK) != nil {
		return sound(name, file+" can't be read in here")
	}
	return advice(name, file+" can be read in here: unless it is of the role host, a script could answer its own unknowns",
		"let it be one of the role host (admin.tokens)")
}

// admin wants the API to be out of reach, or to ask for a token.
func (s Sandbox) admin(ctx context.Context, alone bool) Finding {
	const name = "admin API"
	network, address := "tcp", strings.TrimPrefix(strings.TrimPrefix(s.Admin, "http://"), "https://")
	if path, ok := strings.CutPrefix(s.Admin, "unix:"); ok {
		network, address = "unix", path
	}
	conn, err := (&net.Dialer{Timeout: reach}).DialContext(ctx, network, address)
	switch {
	case err != nil && s.AdminGuessed && (network == "unix" || !alone):
		return unknown(name, address+" can't be reached from in here; whether the API is there isn't known",
			"name the API with --admin, or the proxy's configuration with --config")
	case err != nil:
		return sound(name, address+" can't be reached from in here")
	}
	_ = conn.Close()
	if network == "unix" {
		return advice(name, address+" can be reached from in here; without the token it tells nothing",
			"run the command as another user (keep-proxy run --user), or in a sandbox that doesn't see the socket")
	}
	return advice(name, "it can be reached from in here; without the token it tells nothing",
		"put it on a unix socket that the sandbox doesn't see (admin.listen)")
}
