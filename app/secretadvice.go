package app

import (
	"fmt"
	"os"

	"keep-proxy/config"
	"keep-proxy/rules"
)

// SecretAdvice warns of secrets whose variables or files aren't there for this
// process, and of destinations that it couldn't call. They are no errors: the one that
// serves may have another environment, and resolves them when it uses them.
func SecretAdvice(c config.Config) rules.Findings {
	var found rules.Findings
	sources := config.Sources{LookupEnv: os.LookupEnv, ReadFile: readPlain}
	look := func(key string, s config.Secret) {
		if s.IsZero() {
			return
		}
		if _, err := s.Resolve(sources); err != nil {
			found = append(found, rules.Finding{
				Severity: rules.SeverityWarning, Code: "secret", Key: key, Problem: "can't be resolved here: " + err.Error(),
				Fix: "see that the process that serves has it",
			})
		}
	}
	for i, s := range c.Connectors.Settings {
		if s.Credentials != nil {
			look(fmt.Sprintf("connectors.settings[%d].credentials.value", i), s.Credentials.Value)
		}
	}
	look("proxy.upstream_proxy.password", c.Proxy.UpstreamProxy.Password)
	return placed(c, append(found, notifyAdvice(c)...))
}

// readPlain reads a regular file. Of another one, such as a pipe, it is enough to be
// there: reading would take from it what is meant for the process that serves.
func readPlain(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && !info.IsDir():
		return []byte("unread"), nil
	}
	return os.ReadFile(path)
}
