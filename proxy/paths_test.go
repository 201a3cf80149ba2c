package proxy

import (
	"net/http"
	"testing"
)

// onPaths owns some paths of the upstream alone.
const onPaths = `
apiVersion: keep/v1
connector: test
version: 1
hosts: ["HOST"]
paths: ["/own/{rest...}"]
reads: safe-methods
operations:
  - name: make
    match: {method: POST, path: /own/make}
    effect: mutation
    identity: {to: json.to}
    reconcile: [{none: the test API can't be asked}]
    manual_check: look
`

// What nobody owns of a shared host follows the policy for unknown hosts. The host is looked into all the same.
func TestAPathOfNobodyIsAsOneOfAnUnknownHost(t *testing.T) {
	t.Parallel()
	for policy, free := range map[Policy]int{PolicyDeny: 0, PolicyAllow: 1} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created, func(c *Config) { c.Unmatched, c.Passthrough = policy, []string{"127.0.0.1"} })
			w.use(onPaths)
			r := w.open("a")
			for path, sends := range map[string]int{"/own/make": 1, "/own/other": 0, "/Own/make": 0, "/own/make/": 0, "/free": free} {
				got := send(r.client, http.MethodPost, w.upstream.URL+path, `{"to":"ann"}`)
				if sends == 0 {
					wantProblem(t, got, "unmatched", http.StatusForbidden, "")
				}
				w.wantSends(path, sends)
			}
			if got := send(r.client, http.MethodGet, w.upstream.URL+"/other", ""); got.status >= http.StatusBadRequest {
				t.Errorf("a read got %d", got.status)
			}
			w.mutation("a") // was recorded, though the host may pass through
		})
	}
}
