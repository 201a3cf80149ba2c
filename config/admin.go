package config

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"keep-proxy/internal/names"
)

// AdminToken is a bearer token beside the operator's own, known by its digest alone.
type AdminToken struct {
	// Name is who holds it; it is recorded with what its holder decides. At most 256
	// bytes, and not "operator", which is the holder of TokenFile.
	Name string
	// Role is what the holder may do.
	Role TokenRole
	// SHA256 is the token's digest, 64 hex digits in lower case.
	SHA256 string
}

// TokenRole is what the holder of a token may do. The zero value is invalid and must be
// treated as nothing.
type TokenRole string

// The roles.
const (
	TokenViewer   TokenRole = "viewer"   // reads, contents included
	TokenOperator TokenRole = "operator" // reads, opens runs, decides
	TokenHost     TokenRole = "host"     // opens and ends runs, and reads what became of them
)

// operatorHolder is the holder of the token in admin.token_file.
const operatorHolder = "operator"

// tokensNode reads admin.tokens, which only a file can give.
func tokensNode(d *decoder, key string, n *yaml.Node) (any, bool) {
	return mapList(d, key, n, func(key string, n *yaml.Node) AdminToken {
		var t AdminToken
		d.object(key, n, map[string]field{
			"name": func(key string, n *yaml.Node) { t.Name, _ = readNode(d, key, n, mustBeString, readText) },
			"role": func(key string, n *yaml.Node) {
				t.Role, _ = readNode(d, key, n, mustBeString, readEnum([]TokenRole{TokenViewer, TokenOperator, TokenHost}))
			},
			"sha256": func(key string, n *yaml.Node) { t.SHA256, _ = readNode(d, key, n, anyPlain, readDigest) },
		}, nil, nowhere)
		return t
	})
}

// readDigest reads a token's digest. What is no digest may be the token itself, so that
// no problem quotes it.
func readDigest(_ reading, s string) (string, *fault) {
	sum, err := hex.DecodeString(s)
	if err != nil || len(sum) != sha256.Size {
		return "", &fault{"not the SHA-256 of a token, in 64 hex digits", "make it by: printf %s \"$TOKEN\" | sha256sum"}
	}
	if empty := sha256.Sum256(nil); slices.Equal(sum, empty[:]) {
		return "", &fault{"the SHA-256 of nothing", "make a token, by openssl rand -hex 32, and its digest by: printf %s \"$TOKEN\" | sha256sum"}
	}
	return hex.EncodeToString(sum), nil
}

// readHealthListen reads an address to listen on, or nothing.
func readHealthListen(in reading, s string) (string, *fault) {
	if s == "" {
		return "", nil
	}
	return readListen(in, s)
}

// readPublicURL reads http or https with a host and perhaps a path, or nothing, and gives
// it back without a slash at its end.
func readPublicURL(_ reading, s string) (string, *fault) {
	if s == "" {
		return "", nil
	}
	const form = "write https://HOST or https://HOST/PATH"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || !isHost(u.Hostname()) || u.Port() != "" && !isPort(u.Port(), 1):
		return "", &fault{"not an address that a browser opens", form}
	case u.User != nil:
		return "", &fault{"credentials would stand in every alert", form}
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", &fault{"paths are added to it, so it has neither query nor fragment", form}
	}
	return strings.TrimRight(u.String(), "/"), nil
}

func checkAdmin(r *report, c *Config) {
	a := &c.Admin
	together(r, "admin.tls.cert_file", a.TLS.CertFile, "admin.tls.key_file", a.TLS.KeyFile)
	if strings.HasPrefix(a.Listen, unixPrefix) && a.TLS.Enabled() {
		r.rejected(&fault{
			"a unix socket is served in clear: its owner alone connects to it", "remove admin.tls, or listen on host:port",
		}, "admin.tls.cert_file", "admin.listen")
	}
	if !isLoopback(a.Listen) && !a.TLS.Enabled() {
		r.rejected(&fault{
			"without TLS the admin API answers on loopback alone",
			"use 127.0.0.1:PORT, [::1]:PORT or unix:/path, or set admin.tls",
		}, "admin.listen", "admin.tls.cert_file")
	}
	for _, other := range []struct {
		key, address string
		taken        []string
		by           string
	}{
		{"admin.listen", a.Listen, c.Proxy.Listen, "proxy.listen"},
		{"admin.health_listen", a.HealthListen, c.Proxy.Listen, "proxy.listen"},
		{"admin.health_listen", a.HealthListen, []string{a.Listen}, "admin.listen"},
	} {
		if other.address != "" && slices.Contains(other.taken, other.address) && !anyPort(other.address) {
			r.rejected(&fault{other.key + " and " + other.by + " can't listen on one address", "give each its own"}, other.key, other.by)
		}
	}
	checkTokens(r, a.Tokens)
}

// checkTokens wants each token whole, and name and digest its own: what was decided by
// whom could not be told otherwise.
func checkTokens(r *report, tokens []AdminToken) {
	taken, digests := map[string]string{}, map[string]string{}
	for i, t := range tokens {
		key := indexed("admin.tokens", i)
		switch {
		case t.Name == "":
			r.rejected(&fault{"the holder's name is missing", "add name: NAME, which is recorded with what its holder decides"}, key+".name")
		case t.Name == operatorHolder:
			r.rejected(&fault{"this name is the holder's of admin.token_file", "use another"}, key+".name")
		case taken[t.Name] != "":
			r.rejected(&fault{"this name is taken by " + taken[t.Name], "give each token a name of its own"}, key+".name")
		default:
			taken[t.Name] = key
			named(r, key+".name", t.Name, names.Fault)
		}
		if t.Role == "" {
			r.rejected(&fault{"the role is missing", "add role: viewer, operator or host"}, key+".role")
		}
		switch {
		case t.SHA256 == "":
			r.rejected(&fault{"the token's digest is missing", "add sha256, made by: printf %s \"$TOKEN\" | sha256sum"}, key+".sha256")
		case digests[t.SHA256] != "":
			r.rejected(&fault{"this is the token of " + digests[t.SHA256], "make one for each"}, key+".sha256")
		default:
			digests[t.SHA256] = key
		}
	}
}
