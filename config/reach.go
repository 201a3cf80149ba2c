package config

import (
	"net/url"

	"go.yaml.in/yaml/v4"
)

// readProxyURL reads http://host:port or https://host:port, or nothing. The text of a
// URL with credentials in it is not quoted.
func readProxyURL(_ reading, s string) (string, *fault) {
	if s == "" {
		return "", nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !isHost(u.Hostname()):
		return "", &fault{"not the address of an HTTP proxy", "write http://host:port, or https://host:port"}
	case u.User != nil:
		return "", &fault{"credentials don't belong into the URL", "give them as user and password"}
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return "", &fault{"a proxy has no path", "write http://host:port, or https://host:port"}
	}
	return u.Scheme + "://" + u.Host, nil
}

func readOptionalSecret(in reading, s string) (Secret, *fault) {
	if s == "" {
		return Secret{}, nil
	}
	return readSecret(in, s)
}

// clientCertsNode reads proxy.client_certs, which only a file can give.
func clientCertsNode(d *decoder, key string, n *yaml.Node) (any, bool) {
	at := d.note(key, n)
	if f := listFault(n); f != nil {
		d.report.unreadable(key, at, f)
		return nil, false
	}
	var list []ClientCert
	for i, item := range n.Content {
		var c ClientCert
		d.object(indexed(key, i), item, map[string]field{
			"host": func(key string, n *yaml.Node) { c.Host, _ = readNode(d, key, n, mustBeString, readHostPattern) },
			"cert_file": func(key string, n *yaml.Node) {
				c.CertFile, _ = readNode(d, key, n, mustBeString, readPath)
			},
			"key_file": func(key string, n *yaml.Node) {
				c.KeyFile, _ = readNode(d, key, n, mustBeString, readPath)
			},
		}, nil, nowhere)
		list = append(list, c)
	}
	return list, true
}

// checkReach checks what leads to upstreams.
func checkReach(r *report, p *Proxy) {
	const base = "proxy.upstream_proxy"
	if u := p.UpstreamProxy; u.URL == "" && (u.User != "" || !u.Password.IsZero() || len(u.NoProxy) > 0) {
		r.rejected(&fault{"the proxy's address is missing", "add url: http://host:port"}, base+".url", base+".user", base+".no_proxy")
	} else if (u.User == "") != u.Password.IsZero() {
		r.rejected(&fault{"a user and a password belong together", "set both, or neither"}, base+".user", base+".password")
	}
	for i, c := range p.ClientCerts {
		key := indexed("proxy.client_certs", i)
		for name, value := range map[string]string{"host": c.Host, "cert_file": c.CertFile, "key_file": c.KeyFile} {
			if value == "" {
				r.rejected(&fault{name + " is missing", "give host, cert_file and key_file"}, key+"."+name)
			}
		}
	}
}
