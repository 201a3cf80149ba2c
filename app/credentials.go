package app

import (
	"fmt"
	"os"

	"keep-proxy/config"
)

// credentials resolves what the operator configured for connectors, anew at each
// use: files rotate.
type credentials struct {
	byConnector map[string]*config.Credentials
	sources     config.Sources
}

func newCredentials(c config.Connectors) *credentials {
	out := &credentials{
		byConnector: make(map[string]*config.Credentials),
		sources:     config.Sources{LookupEnv: os.LookupEnv, ReadFile: os.ReadFile},
	}
	for _, s := range c.Settings {
		if s.Credentials != nil {
			out.byConnector[s.Connector] = s.Credentials
		}
	}
	return out
}

// For implements reconcilers.Credentials.
func (c *credentials) For(connector string) (header, value string, err error) {
	configured := c.byConnector[connector]
	if configured == nil {
		return "", "", nil
	}
	value, err = configured.Value.Resolve(c.sources)
	if err != nil {
		return "", "", fmt.Errorf("connectors.settings: credentials of %s: %w", connector, err)
	}
	return configured.Header, value, nil
}

// Always implements proxy.Credentials.
func (c *credentials) Always(connector string) (name, value string, ok bool, err error) {
	configured := c.byConnector[connector]
	if configured == nil || configured.Use != config.UseAlways {
		return "", "", false, nil
	}
	name, value, err = c.For(connector)
	return name, value, err == nil, err
}
