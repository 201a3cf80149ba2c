package app

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
	"keep-proxy/rules"
)

// connectorSet loads connectors, each by the lines that name it.
func connectorSet(t *testing.T, heads ...string) *rules.Set {
	t.Helper()
	var files []rules.File
	for _, head := range heads {
		name, _, _ := strings.Cut(head, "\n")
		text := "apiVersion: keep/v1\nconnector: " + head + "\nreads: safe-methods\nhosts: [" + name + ".test]\n" +
			"operations:\n- {name: look, match: {method: GET, path: /x}, effect: read}\n"
		files = append(files, rules.File{Name: name + ".yaml", Data: []byte(text)})
	}
	set, findings := rules.Load(files, nil, rules.Defaults{})
	if set == nil {
		t.Fatal(findings)
	}
	return set
}

func TestWhatAChangeLeavesBehindIsNamed(t *testing.T) {
	t.Parallel()
	now := func() ledger.Stamp { return ledger.Stamp(clock.Take(clock.System())) }
	m := ledgertest.SampleMutation("a", ledger.Applied, 0)
	a := &App{ledger: ledger.New(ledgertest.NewMemory(ledger.Process{ID: "p", Started: now()}), ledger.Config{Now: now, Wall: time.Now, NewID: NewID})}
	a.options.Log = zerolog.Nop()
	if err := a.ledger.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) }); err != nil {
		t.Fatal(err)
	}
	recorded, one := m.Connector, "\nversion: 1"
	for name, c := range map[string]struct {
		before, after []string
		want          []string
	}{
		"nothing changed":                       {[]string{recorded + one, "b" + one}, []string{recorded + one, "b" + one}, nil},
		"one is renamed":                        {[]string{recorded + one}, []string{"own" + one}, []string{"gone " + recorded}},
		"one is renamed, and says so":           {[]string{recorded + one}, []string{"own\nwas: " + recorded + one}, nil},
		"one without records is gone":           {[]string{recorded + one, "b" + one}, []string{recorded + one}, nil},
		"one is changed, and its version":       {[]string{"b" + one}, []string{"b\ntitle: x\nversion: 2"}, nil},
		"one is changed, and its version isn't": {[]string{"b" + one}, []string{"b\ntitle: x" + one}, []string{"version 1"}},
	} {
		findings, err := a.changeAdvice(t.Context(), connectorSet(t, c.before...), connectorSet(t, c.after...))
		var got []string
		for _, f := range findings {
			got = append(got, f.Code+" "+f.Value)
		}
		if err != nil || !slices.Equal(got, c.want) || findings.Failed() {
			t.Errorf("%s: %v, %v", name, findings, err)
		}
	}
}

// A record under a connector's earlier name is asked about with the credential of now.
func TestACredentialIsThatOfEachOfItsNames(t *testing.T) {
	t.Parallel()
	c := newCredentials(configured(t, "{header: Authorization, value: secret}"), connectorSet(t, "a\nwas: old\nversion: 1"), clock.System())
	for name, want := range map[string]string{"a": "secret", "old": "secret", "other": ""} {
		if _, value, err := c.For(name, "https", "a.test"); value != want || err != nil {
			t.Errorf("%s: %q, %v", name, value, err)
		}
	}
}
