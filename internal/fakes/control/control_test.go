package control_test

import (
	"path/filepath"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/bank"
	"keep-proxy/internal/fakes/control"
	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/quotes"
	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fakes/server"
)

func start(t *testing.T, api server.API) (*control.Client, *server.Server) {
	t.Helper()
	log, err := oracle.Open(filepath.Join(t.TempDir(), "effects.log"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	s, err := server.Start(server.Config{API: api, Log: log, Control: server.Loopback})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := control.New(s.ControlURL() + "/")
	t.Cleanup(c.Close)
	return c, s
}

func TestFaultsFromOutside(t *testing.T) {
	t.Parallel()
	c, s := start(t, bank.New(bank.Defaults()))
	if err := c.ArmNamed(t.Context(), "commit-close"); err != nil {
		t.Fatal(err)
	}
	custom := script.Fault{
		Name: "mine", Times: 3, Match: script.Match{Path: "/transfers"},
		Steps: []script.Step{{Do: script.Commit}, {Do: script.Wait, Hold: "odd/gate ?"}, {Do: script.Answer}},
	}
	if err := c.Arm(t.Context(), custom); err != nil {
		t.Fatal(err)
	}
	armed, err := c.Armed(t.Context())
	if err != nil || len(armed) != 2 || armed[0].Name != "commit-close" || armed[1].Times != 3 || armed[1].Steps[1].Hold != "odd/gate ?" {
		t.Errorf("armed %+v, %v", armed, err)
	}
	if err := c.Release(t.Context(), "odd/gate ?"); err != nil {
		t.Errorf("a gate with an odd name: %v", err)
	}
	if err := c.Disarm(t.Context()); err != nil || len(s.Armed()) != 0 {
		t.Errorf("disarm: %v, left %v", err, s.Armed())
	}
}

func TestArmRefusesWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	c, s := start(t, bank.New(bank.Defaults()))
	f, err := script.Named("close")
	if err != nil {
		t.Fatal(err)
	}
	f.Match.When = func(script.Subject) bool { return true }
	if err := c.Arm(t.Context(), f); err == nil || !strings.Contains(err.Error(), "in process") {
		t.Errorf("a function: %v", err)
	}
	if err := c.ArmNamed(t.Context(), "nope"); err == nil {
		t.Error("an unknown name was armed")
	}
	if err := c.Arm(t.Context(), script.Fault{}); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("a fault without steps: %v", err)
	}
	if len(s.Armed()) != 0 {
		t.Errorf("armed: %v", s.Armed())
	}
}

func TestSettingsAndBooks(t *testing.T) {
	t.Parallel()
	c, _ := start(t, bank.New(bank.Defaults()))
	if err := c.Adjust(t.Context(), map[string]any{"accounts": map[string]int{"ann": 100}}); err != nil {
		t.Fatal(err)
	}
	if books, err := c.Books(t.Context()); err != nil || !strings.Contains(books, "ann      1.00 EUR") {
		t.Errorf("books %q, %v", books, err)
	}
	if err := c.Adjust(t.Context(), map[string]any{"nope": 1}); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Errorf("an unknown setting: %v", err)
	}
	none, _ := start(t, quotes.New())
	if _, err := none.Books(t.Context()); err == nil || !strings.Contains(err.Error(), "quotes keeps no books") {
		t.Errorf("books of quotes: %v", err)
	}
	if err := none.Adjust(t.Context(), struct{}{}); err == nil || !strings.Contains(err.Error(), "no settings") {
		t.Errorf("settings of quotes: %v", err)
	}
}

func TestHealthAndTally(t *testing.T) {
	t.Parallel()
	c, s := start(t, bank.New(bank.Defaults()))
	h, err := c.Health(t.Context())
	if err != nil || h.API != "bank" || h.URL != s.URL() || h.Connections != 0 || h.Error != "" {
		t.Errorf("health %+v, %v", h, err)
	}
	if tally, err := c.Tally(t.Context()); err != nil || len(tally.Events) != 0 {
		t.Errorf("tally %+v, %v", tally, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tally(t.Context()); err == nil {
		t.Error("a closed fake was counted")
	}
}
