package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// call makes one request to the control listener.
func (b *bench) call(method, path, body string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.ControlURL()+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestControlRefusesInWords(t *testing.T) {
	t.Parallel()
	b := start(t)
	tests := []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"a fault that isn't JSON", "POST", "/_control/faults", "{", 400, "decode fault"},
		{"a fault with an unknown name", "POST", "/_control/faults", `{"named":"nope"}`, 400, `no fault is named "nope"`},
		{"a fault that never ends the request", "POST", "/_control/faults", `{"steps":[{"do":"commit"}]}`, 400, "want exactly 1"},
		{"settings that aren't JSON", "POST", "/_control/settings", "{", 400, "no JSON"},
		{"an unknown place", "GET", "/_control/nope", "", 404, "not found"},
		{"a wrong method", "PUT", "/_control/faults", "", 405, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, body := b.call(tt.method, tt.path, tt.body)
			if status != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("%d %q, want %d with %q", status, body, tt.status, tt.want)
			}
		})
	}
}

func TestControlIsNotOnTheUpstream(t *testing.T) {
	t.Parallel()
	b := start(t)
	resp, err := b.client(false).Get(b.URL() + "/_control/faults")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if data, err := io.ReadAll(resp.Body); err != nil || string(data) != `"read"` {
		t.Errorf("the upstream gave %q (%v), want the API's own answer", data, err)
	}
}

func TestControlCounts(t *testing.T) {
	t.Parallel()
	b := start(t)
	if status, body := b.call("POST", "/_control/faults", `{"named":"commit-500","match":{"path":"/th*"},"times":2}`); status != 201 {
		t.Fatalf("%d %s", status, body)
	}
	if _, body := b.call("GET", "/_control/faults", ""); !strings.Contains(body, `"times":2`) {
		t.Errorf("armed: %s", body)
	}
	if _, _, err := b.post(t.Context(), b.client(true), "a"); err != nil {
		t.Fatal(err)
	}
	b.await("ended", 1)
	if _, body := b.call("GET", "/_control/counts", ""); strings.TrimSpace(body) != `{"thing:a":{"sends":1,"effects":1,"answers":1}}` {
		t.Errorf("counts: %s", body)
	}
	if status, _ := b.call("DELETE", "/_control/faults", ""); status != 204 || len(b.Armed()) != 0 {
		t.Errorf("%d, still armed: %v", status, b.Armed())
	}
	if _, body := b.call("GET", "/_control/health", ""); !strings.Contains(body, `"connections":1`) || strings.Contains(body, "error") {
		t.Errorf("health: %s", body)
	}
}
