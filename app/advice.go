package app

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"time"

	"keep-proxy/config"
	"keep-proxy/notify"
	"keep-proxy/rules"
)

// advice gathers warnings about what this process can't resolve or call. They are no errors: the one that serves may have
// another environment, and resolves them when it uses them.
type advice rules.Findings

func (a *advice) warn(code, key, problem, fix string) {
	*a = append(*a, rules.Finding{Severity: rules.SeverityWarning, Code: code, Key: key, Problem: problem, Fix: fix})
}

// look warns of a secret whose variable or file isn't there, or whose text check refuses. It only looks whether a pipe
// or the like is there. Reading would take what is meant for the process that serves.
func (a *advice) look(key string, s config.Secret, check func(text string) error) {
	if s.IsZero() {
		return
	}
	plain := true
	text, err := s.Resolve(config.Sources{LookupEnv: os.LookupEnv, ReadFile: func(path string) ([]byte, error) {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular() && !info.IsDir():
			plain = false
			return []byte("unread"), nil
		}
		return os.ReadFile(path)
	}})
	if err != nil {
		a.warn("secret", key, "can't be resolved here: "+err.Error(), "see that the process that serves has it")
		return
	}
	if plain && check != nil {
		if err := check(text); err != nil {
			a.warn("notify", key, err.Error(), "correct it: until then nobody is called by it")
		}
	}
}

// SecretAdvice warns of secrets whose variables or files aren't there for this process, and of destinations that it
// couldn't call.
func SecretAdvice(c config.Config) rules.Findings {
	var found advice
	for i, s := range c.Connectors.Settings {
		if s.Credentials != nil {
			secrets := s.Credentials.Secrets()
			for _, name := range slices.Sorted(maps.Keys(secrets)) {
				found.look(fmt.Sprintf("connectors.settings[%d].credentials.%s", i, name), secrets[name], nil)
			}
		}
	}
	found.look("proxy.upstream_proxy.password", c.Proxy.UpstreamProxy.Password, nil)
	return placed(c, append(rules.Findings(found), notifyAdvice(c)...))
}

// notifyAdvice warns of destinations that can't be called by this process as they are
// configured. Nobody would find out before somebody is needed, and isn't called.
func notifyAdvice(c config.Config) rules.Findings {
	var found advice
	for i, e := range c.Notify.Exec {
		if _, err := exec.LookPath(e.Command[0]); err != nil {
			found.warn("notify", fmt.Sprintf("notify.exec[%d].command", i), "can't be started here: "+err.Error(),
				"name a program that the process that serves can start")
		}
	}
	for i, w := range c.Notify.Webhooks {
		found.look(fmt.Sprintf("notify.webhooks[%d].url", i), w.URL, func(text string) error {
			_, err := notify.ParseURL(text)
			return err
		})
		if w.Secret != nil {
			found.look(fmt.Sprintf("notify.webhooks[%d].secret", i), *w.Secret, func(text string) error {
				_, err := notify.ParseKey(text)
				return err
			})
		}
	}
	return rules.Findings(found)
}

// ageAdvice warns of rules for which the asking ends before their absence can be believed.
func ageAdvice(set *rules.Set, maxAge time.Duration) rules.Findings {
	var found advice
	for _, c := range set.Compiled() {
		for _, op := range c.Operations {
			if believed := op.Settle + time.Duration(op.Confirmations-1)*op.Spacing; op.ProvesAbsence() && believed >= maxAge {
				found.warn("max_age", "reconcile.max_age",
					fmt.Sprintf("after %s a person is asked, before an absence can be believed for %s.%s", maxAge, c.Name, op.Name),
					fmt.Sprintf("write more than %s, or give the rule bounds and a shorter settle", believed))
			}
		}
	}
	return rules.Findings(found)
}
