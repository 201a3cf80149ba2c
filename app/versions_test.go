package app

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"keep-proxy/rules"
)

// versionText is a stored connector; the text in it makes its hash another one.
const versionText = `apiVersion: keep/v1
connector: things
version: 1
title: Things %s
hosts: [things.test]
reads: safe-methods
operations:
  - name: make
    effect: read
    match: {method: POST, path: /things}
`

func TestStoredVersionsAreLoadedOnceForAllWhoAsk(t *testing.T) {
	t.Parallel()
	asked := map[string]int{}
	v := &versions{content: func(_ context.Context, hash string) ([]byte, error) {
		asked[hash]++
		return fmt.Appendf(nil, versionText, hash), nil
	}}
	get := func(hash string) *rules.Connector {
		t.Helper()
		c, err := v.connector(t.Context(), hash)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := get("a")
	if again := get("a"); again != first || asked["a"] != 1 {
		t.Errorf("a version was loaded %d times", asked["a"])
	}
	v.use([]rules.Settings{{Connector: "things", Hosts: []string{"elsewhere.test"}}})
	if moved := get("a"); moved == first || moved.Hosts[0] != "elsewhere.test" || asked["a"] != 2 {
		t.Errorf("under other settings its hosts are %v, after it was loaded %d times", moved.Hosts, asked["a"])
	}
	for i := range 3 * maxVersions {
		if get(fmt.Sprint(i)); len(v.loaded) > maxVersions {
			t.Fatalf("%d versions are kept", len(v.loaded))
		}
	}
}

func TestAStoredVersionThatDoesNotLoadIsToldWithoutItsValues(t *testing.T) {
	t.Parallel()
	v := &versions{content: func(context.Context, string) ([]byte, error) {
		return []byte(strings.Replace(versionText, "effect: read", "effect: hunter2", 1)), nil
	}}
	_, err := v.connector(t.Context(), "a")
	if err == nil || !strings.HasPrefix(err.Error(), "the stored rule file does not load: ") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("it was told as %v", err)
	}
}
