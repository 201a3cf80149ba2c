package rules

// Set is every connector that is in force. It is immutable; a reload makes a new
// one.
type Set struct {
	connectors []*Connector
	byName     map[string]*Connector
	exact      map[string]*Connector
	patterns   []*Connector
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
		if c, _ := s.lookup(host, port); c != nil {
			return true
		}
	}
	return false
}
