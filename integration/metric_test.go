package integration

import (
	"bufio"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// metric asks a process for one of its metrics, over a connection that isn't kept.
func (w *world) metric(at, name string) float64 {
	w.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get(at + "/metrics")
	if err != nil {
		w.t.Fatalf("metrics: %v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			return value
		}
	}
	w.t.Fatalf("no metric %s", name)
	return 0
}
