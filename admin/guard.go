package admin

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"strings"

	"keep-proxy/admin/wire"
)

// guard refuses, before anything of a request is looked at:
//
//  1. A request that takes this server for a proxy (421 misdirected).
//  2. Over TCP, a Host field that isn't this server's (421 misdirected). A page whose name was made to point here has
//     one.
//  3. A request that a browser sent for a page (403 browser). It has an Origin field, or a Sec-Fetch-Site field that
//     doesn't say that a person typed the address.
func (s *Server) guard(r *http.Request) *wire.Problem {
	if r.URL.IsAbs() || r.Method == http.MethodConnect {
		return refuse("misdirected", "This is the admin API, not the proxy; see proxy_url of an opened run.")
	}
	if !onUnixSocket(r.Context()) && !s.ownHost(r.Host) {
		return refuse("misdirected", "The Host field names %q, which isn't this server; "+
			"use a loopback address, localhost, or a name that is configured (admin.public_url, admin.tls).", r.Host)
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if r.Header.Get("Origin") != "" || (site != "" && site != "none") {
		return refuse("browser", "The API answers programs, not web pages; there is no CORS.")
	}
	return nil
}

// onUnixSocket reports whether the request came over a unix socket, whose
// clients name any host.
func onUnixSocket(ctx context.Context) bool {
	addr, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr)
	return ok && addr.Network() == "unix"
}

// ownHost reports whether a Host field is a loopback address, localhost, or a configured name. With
// TLS it may also be any address, or a name of the certificate.
func (s *Server) ownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "localhost" {
		return true
	}
	secure := s.config.TLS != nil
	if ip := net.ParseIP(name); ip != nil {
		// Names are what can be made to point here; an address can't.
		return secure || ip.IsLoopback() || s.hosts[name]
	}
	return s.hosts[name] || secure && s.config.Named(name)
}

// authorize returns who asks, or why that isn't enough for what the roles may.
func (s *Server) authorize(r *http.Request, roles []Role) (caller, *wire.Problem) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return caller{}, refuse("token", "Send the operator's token: Authorization: Bearer TOKEN. It is in the token file, by default in the data folder.")
	}
	who, ok := identify(s.holders, strings.TrimSpace(token))
	if !ok {
		return caller{}, refuse("token", "The token isn't known here; it may be another ledger's. It is in the token file, by default in the data folder.")
	}
	if !who.role.may(roles) {
		needed := cmp.Or(joined(roles, " or "), "one that nobody has")
		return caller{}, refuse("role", "The token of %s has the role %s; this needs %s.", who.name, who.role, needed)
	}
	return who, nil
}
