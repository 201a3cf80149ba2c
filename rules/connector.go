package rules

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Head is what a set knows of a connector before it is compiled.
type Head struct {
	Name string
	// Was are the connector's earlier names.
	Was     []string
	Version int
	// Hash is the hex SHA-256 of Content. Records are pinned to it.
	Hash string
	// File is the name the file was loaded under.
	File string
	// Hosts are the host patterns in force (settings replace the file's).
	Hosts []string
	// HostsInForce are Hosts where settings replaced the file's, with a space between two, else
	// OwnHosts. What the variables of a host are depends on them, and so do mutation keys.
	HostsInForce string
	// Paths are the patterns of the hosts' paths that are the connector's; empty for all.
	Paths []string

	// service is AWS's, as signatures name it; empty for any other API.
	service string
	hosts   []*hostPattern
	// paths are Paths, folded.
	paths []*pathPattern
	// fileHosts are the file's own, which its cases are written for.
	fileHosts []*hostPattern
	// at is where the file names the connector, hostsAt where its hosts.
	at, hostsAt Where
}

// Connector is one external API, as its file describes it with the user's
// settings applied.
type Connector struct {
	Head
	Title string
	// Accept are warnings that a person answered, by code, with why.
	Accept map[string]string
	// Evidence says where its facts are known from.
	Evidence []Evidence
	// Content is the file as loaded; it loads again to the same connector.
	Content []byte
	// HostGroup is part of every mutation key; the connector's name by default.
	HostGroup string
	// ReadsSafe says that GET, HEAD and OPTIONS which match no operation pass.
	ReadsSafe bool
	// ReadPaths are the path patterns whose GET, HEAD and OPTIONS pass.
	ReadPaths []string
	// TrustRefused says that HTTP/2 REFUSED_STREAM and GOAWAY prove that a
	// request was not processed (RFC 9113 §8.7). Default true; a file opts out for
	// an upstream that is known to break the promise.
	TrustRefused bool
	// HasAccount says that a rule derives whose data is changed.
	HasAccount bool
	// AccountRead is how that is asked of the API; nil where requests say it, or nothing.
	AccountRead *AccountRead
	// Parameters are in the file's order.
	Parameters []Parameter
	// Rate bounds dispatches, resends and probes together; the zero value bounds nothing.
	Rate Rate
	// Operations are in the order in which they are tried.
	Operations []*Operation
	// outcome stands behind that of each operation.
	outcome []*outcomeRule

	// broken says why a file can't be compiled. All that goes to its hosts is refused.
	broken *Finding
	// lacks names a variable of the host that a stored version reads and the hosts in force don't have.
	lacks     string
	readPaths []*pathPattern
	account   *expr
	// credentialField is the header field of the configured credential; empty for none.
	credentialField string
	// signs says that each mutation is signed anew.
	signs bool
	cases []*testCase
	// values are those of the parameters. with loads the connector again with others set; nil for a stored version.
	values parameterValues
	with   func(set map[string]Given) (*Connector, Findings)
}

// Rate is at most Requests per Per.
type Rate struct {
	Requests int
	Per      time.Duration
}

// Bounds reports whether the rate says anything.
func (r Rate) Bounds() bool { return r.Requests > 0 && r.Per > 0 }

// Operation looks an operation up by name; nil if there is none.
func (c *Connector) Operation(name string) *Operation {
	for _, op := range c.Operations {
		if op.Name == name {
			return op
		}
	}
	return nil
}

// Set is every connector that is in force. It is immutable; a reload makes a new
// one.
type Set struct {
	owners []*owner
	byName map[string]*owner
	// exact holds the hosts without variables at the scheme's default port.
	exact map[string][]*owner
	// patterns holds the others.
	patterns []hostOwner
}

// owner is a connector of a set, which owns its hosts. A late one is compiled when it is first asked for.
type owner struct {
	Head
	late      bool
	connector func() *Connector
}

// hostOwner is a host pattern and whose it is.
type hostOwner struct {
	pattern *hostPattern
	owner   *owner
}

// Connectors are all connectors, by name. Those that are late are compiled.
func (s *Set) Connectors() (all []*Connector) {
	for _, p := range s.owners {
		all = append(all, p.connector())
	}
	return all
}

// Compiled are the connectors that were compiled when the set was loaded, by name.
func (s *Set) Compiled() (all []*Connector) {
	for _, p := range s.owners {
		if !p.late {
			all = append(all, p.connector())
		}
	}
	return all
}

// Heads are the heads of all connectors, by name.
func (s *Set) Heads() (all []Head) {
	for _, p := range s.owners {
		all = append(all, p.Head)
	}
	return all
}

// Head looks a connector's head up by its name of now; nil if there is none.
func (s *Set) Head(name string) *Head {
	if p := s.byName[name]; p != nil {
		return &p.Head
	}
	return nil
}

// Connector looks a connector up by name; nil if there is none.
func (s *Set) Connector(name string) *Connector {
	if p := s.byName[name]; p != nil {
		return p.connector()
	}
	return nil
}

// ConnectorHost reports whether any connector declares the authority (host or host:port) under http or https. It tells
// what must be known before there is a request, such as whether a tunnel may stay blind. An authority that can't be
// read counts as declared.
func (s *Set) ConnectorHost(authority string) bool {
	for _, scheme := range []string{"https", "http"} {
		host, port, refusal := normalAuthority(authority, scheme)
		if refusal != nil {
			return true
		}
		if p, _ := s.lookup(scheme, host, port, nil); p != nil {
			return true
		}
	}
	return false
}

// Ports are the TCP ports of all connectors' hosts, in order. A host without a port has those of http and https.
func (s *Set) Ports() []uint16 {
	ports := map[uint16]bool{}
	for _, p := range s.owners {
		for _, h := range p.hosts {
			for _, scheme := range []string{"http", "https"} {
				// Loading took the port for a number already.
				n, _ := strconv.ParseUint(cmp.Or(h.port, defaultPort(scheme)), 10, 16)
				ports[uint16(n)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ports))
}

// Covers reports whether a connector declares the host, or paths of it, under the scheme.
func (s *Set) Covers(connector, scheme, authority string) bool {
	host, port, refusal := normalAuthority(authority, scheme)
	if refusal != nil {
		return false
	}
	p := s.byName[connector]
	return p != nil && slices.ContainsFunc(p.hosts, func(h *hostPattern) bool {
		_, fits := h.match(scheme, host, port)
		return fits
	})
}

// Signing is what a connector's signature for the host names (SigV4): the service, empty for none, and the host's region.
func (s *Set) Signing(connector, scheme, authority string) (service, region string) {
	host, port, refusal := normalAuthority(authority, scheme)
	if p := s.byName[connector]; p != nil && refusal == nil {
		for _, h := range p.hosts {
			if vars, fits := h.match(scheme, host, port); fits {
				return p.service, vars["region"]
			}
		}
	}
	return "", ""
}

// Heir is the head of the connector that has or had this name; nil for none.
func (s *Set) Heir(name string) *Head {
	for _, p := range s.owners {
		if p.was(name) {
			return &p.Head
		}
	}
	return nil
}

// lookup finds the connector of a path of a normalised host, and its host variables. Without a path any of the host's
// connectors is found.
func (s *Set) lookup(scheme, host, port string, at *path) (*owner, map[string]string) {
	if port == "" {
		for _, p := range s.exact[host] {
			if p.owns(at) {
				return p, nil
			}
		}
	}
	for _, o := range s.patterns {
		if vars, ok := o.pattern.match(scheme, host, port); ok && o.owner.owns(at) {
			return o.owner, vars
		}
	}
	return nil, nil
}
