package proxy

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// getRules has a mutation by a method that is safe elsewhere.
var getRules = strings.Replace(testRules, "operations:\n", `operations:
  - name: trigger
    match: {method: GET, path: "/trigger/{name}"}
    effect: mutation
    describe: "Trigger {path.name}"
    identity: {name: path.name}
    reconcile:
      - none: "the test API can't be asked"
    manual_check: "look"
`, 1)

// Whether the caller of a mutation has gone decides whether asking again is a second intent
// (semantics §2), whatever its method: nothing else of a read hangs on it.
func TestACallerOfAMutationByGETThatGoesIsSeen(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	releaseAll := sync.OnceFunc(func() { close(release) })
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(arrived) })
		<-release
		created(rw, r)
	})
	t.Cleanup(releaseAll)
	w.use(getRules)
	r := w.open("a")
	client := w.newClient(r.user(), false)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.upstream.URL+"/trigger/x", http.NoBody)
		if err == nil {
			_, err = client.Do(req)
		}
		gone <- err
	}()
	<-arrived
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("the caller got an answer")
	}
	w.waitForGoneCaller()
	answer := make(chan got, 1)
	go func() { answer <- send(client, http.MethodGet, w.upstream.URL+"/trigger/x", "") }()
	w.waitForJoiner(answer)
	releaseAll()
	if g := <-answer; g.status != 201 || g.body != `{"id":1}` {
		t.Errorf("asking again: %d %q", g.status, g.body)
	}
	w.wantSends("/trigger/x", 1)
}
