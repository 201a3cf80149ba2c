package rules

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Connector is one external API, as its file describes it with the user's
// settings applied.
type Connector struct {
	Name string
	// Was are the connector's earlier names.
	Was   []string
	Title string
	// Accept are warnings that a person answered, by code, with why.
	Accept map[string]string
	// Evidence says where its facts are known from.
	Evidence []Evidence
	Version  int
	// Hash is the hex SHA-256 of Content. Records are pinned to it.
	Hash string
	// Content is the file as loaded; it loads again to the same connector.
	Content []byte
	// File is the name the file was loaded under.
	File string
	// Hosts are the host patterns in force (settings replace the file's).
	Hosts []string
	// HostsInForce are Hosts where settings replaced the file's, with a space between two, else
	// OwnHosts. What the variables of a host are depends on them, and so do mutation keys.
	HostsInForce string
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

	// at is where the file names the connector.
	at Where

	hosts []*hostPattern
	// fileHosts are the file's own, which its cases are written for.
	fileHosts []*hostPattern
	// lacks names a variable of the host that a stored version reads and the hosts in force don't have.
	lacks     string
	readPaths []*pathPattern
	account   *expr
	// credentialField is the header field of the configured credential; empty for none.
	credentialField string
	cases           []*testCase
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
	connectors []*Connector
	byName     map[string]*Connector
	// exact holds the hosts without variables at the scheme's default port.
	exact map[string]*Connector
	// patterns holds the others.
	patterns []hostOwner
}

// hostOwner is a host pattern and whose it is.
type hostOwner struct {
	pattern   *hostPattern
	connector *Connector
}

// Connectors are all connectors, by name.
func (s *Set) Connectors() []*Connector { return s.connectors }

// Connector looks a connector up by name; nil if there is none.
func (s *Set) Connector(name string) *Connector { return s.byName[name] }

// ConnectorHost reports whether any connector declares the authority (host or host:port) under http or https. It tells
// what must be known before there is a request, such as whether a tunnel may stay blind. An authority that can't be
// read counts as declared.
func (s *Set) ConnectorHost(authority string) bool {
	for _, scheme := range []string{"https", "http"} {
		host, port, refusal := normalAuthority(authority, scheme)
		if refusal != nil {
			return true
		}
		if c, _ := s.lookup(scheme, host, port); c != nil {
			return true
		}
	}
	return false
}

// Ports are the TCP ports of all connectors' hosts, in order. A host without a port has those of http and https.
func (s *Set) Ports() []uint16 {
	ports := map[uint16]bool{}
	for _, c := range s.connectors {
		for _, h := range c.hosts {
			for _, scheme := range []string{"http", "https"} {
				// Loading took the port for a number already.
				n, _ := strconv.ParseUint(cmp.Or(h.port, defaultPort(scheme)), 10, 16)
				ports[uint16(n)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ports))
}

// Covers reports whether a connector declares the host, under the scheme.
func (s *Set) Covers(connector, scheme, authority string) bool {
	host, port, refusal := normalAuthority(authority, scheme)
	if refusal != nil {
		return false
	}
	c, _ := s.lookup(scheme, host, port)
	return c != nil && c.Name == connector
}

// Heir is the connector that has or had this name; nil for none.
func (s *Set) Heir(name string) *Connector {
	for _, c := range s.connectors {
		if c.was(name) {
			return c
		}
	}
	return nil
}

// lookup finds the connector of a normalised host and its host variables.
func (s *Set) lookup(scheme, host, port string) (*Connector, map[string]string) {
	if port == "" {
		if c := s.exact[host]; c != nil {
			return c, nil
		}
	}
	for _, o := range s.patterns {
		if vars, ok := o.pattern.match(scheme, host, port); ok {
			return o.connector, vars
		}
	}
	return nil, nil
}
