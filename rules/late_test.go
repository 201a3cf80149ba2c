package rules

import (
	"net/http"
	"strings"
	"testing"
)

// withFaults has a head that loads, and an operation that doesn't.
func withFaults() string { return withOperation("effect: ruin") }

func loadLate(t *testing.T, settings []Settings, text string) *Set {
	t.Helper()
	set, findings := Load([]File{{Name: "bundled:test.yaml", Data: []byte(text), Bundled: "test", Late: true}}, settings, Defaults{})
	if set == nil {
		t.Fatal(findings)
	}
	return set
}

func TestALateFileIsCompiledWhenItsHostIsSeen(t *testing.T) {
	t.Parallel()
	set := loadLate(t, nil, withOperation())
	eager, _ := Load([]File{{Name: "bundled:test.yaml", Data: []byte(withOperation())}}, nil, Defaults{})
	if len(set.Compiled()) != 0 || len(eager.Compiled()) != 1 {
		t.Fatalf("compiled at start: %d late ones, %d others", len(set.Compiled()), len(eager.Compiled()))
	}
	if !set.ConnectorHost("api.test") || !set.Covers("test", "https", "api.test") || set.Head("test") == nil {
		t.Error("its host isn't known before it is compiled")
	}
	if head, whole := set.Heads()[0], eager.Heads()[0]; head.Hash != whole.Hash || head.Version != whole.Version || head.File != whole.File {
		t.Errorf("its head is %+v, compiled %+v", head, whole)
	}
	m := set.Match(request(t, "POST https://api.test/things", `{"name":"n"}`, "Content-Type: application/json"))
	if m.Operation == nil || m.Operation.Name != "make" {
		t.Errorf("a request of it: %+v", m)
	}
}

func TestALateFileWithFaultsRefusesAll(t *testing.T) {
	t.Parallel()
	set := loadLate(t, nil, withFaults())
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		m := set.Match(request(t, method+" https://api.test/things", ""))
		if m.Refusal == nil || m.Effect.passes() || !strings.Contains(m.Refusal.Detail, "ruin") {
			t.Errorf("%s: %+v", method, m)
		}
	}
}

func TestALateFileWithSettingsIsCompiledAtStart(t *testing.T) {
	t.Parallel()
	if set := loadLate(t, []Settings{{Connector: "test", Hosts: []string{"other.test"}}}, withOperation()); len(set.Compiled()) != 1 {
		t.Error("it wasn't")
	}
	_, findings := Load([]File{{Data: []byte(withFaults()), Late: true}}, []Settings{{Connector: "test"}}, Defaults{})
	if !findings.Failed() {
		t.Error("its faults weren't found at start")
	}
}
