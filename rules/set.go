package rules

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

// ConnectorHost reports whether any connector declares the authority (host or
// host:port) under http or https. It is for what must be known before there is a
// request, such as whether a tunnel may stay blind; an authority that can't be
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

// Covers reports whether a connector declares the host, under the scheme.
func (s *Set) Covers(connector, scheme, authority string) bool {
	host, port, refusal := normalAuthority(authority, scheme)
	if refusal != nil {
		return false
	}
	c, _ := s.lookup(scheme, host, port)
	return c != nil && c.Name == connector
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
