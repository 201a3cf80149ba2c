package app

import (
	"fmt"
	"os"
	"os/exec"

	"keep-proxy/config"
	"keep-proxy/notify"
	"keep-proxy/rules"
)

// notifyAdvice warns of destinations that can't be called by this process as they are
// configured. Nobody would find out before somebody is needed, and isn't called.
func notifyAdvice(c config.Config) (found rules.Findings) {
	warn := func(code, key, problem, fix string) {
		found = append(found, rules.Finding{Severity: rules.SeverityWarning, Code: code, Key: key, Problem: problem, Fix: fix})
	}
	for i, e := range c.Notify.Exec {
		if _, err := exec.LookPath(e.Command[0]); err != nil {
			warn("notify", fmt.Sprintf("notify.exec[%d].command", i), "can't be started here: "+err.Error(),
				"name a program that the process that serves can start")
		}
	}
	look := func(key string, s config.Secret, check func(text string) error) {
		plain := true
		text, err := s.Resolve(config.Sources{LookupEnv: os.LookupEnv, ReadFile: func(path string) ([]byte, error) {
			if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
				plain = false
			}
			return readPlain(path)
		}})
		switch {
		case err != nil:
			warn("secret", key, "can't be resolved here: "+err.Error(), "see that the process that serves has it")
		case plain:
			if err := check(text); err != nil {
				warn("notify", key, err.Error(), "correct it: until then nobody is called by it")
			}
		}
	}
	for i, w := range c.Notify.Webhooks {
		look(fmt.Sprintf("notify.webhooks[%d].url", i), w.URL, func(text string) error {
			_, err := notify.ParseURL(text)
			return err
		})
		if w.Secret != nil {
			look(fmt.Sprintf("notify.webhooks[%d].secret", i), *w.Secret, func(text string) error {
				_, err := notify.ParseKey(text)
				return err
			})
		}
	}
	return found
}
