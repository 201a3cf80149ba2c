package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/ledger"
)

// watchedRules follow a job that was accepted.
const watchedRules = `apiVersion: keep/v1
connector: api
version: 1
title: Test API
hosts: ["HOST"]
reads: safe-methods
operations:
  - name: job
    match: {method: POST, path: /jobs}
    effect: mutation
    describe: "Job {json.to}"
    identity: {to: json.to}
    watch:
      get: "/jobs/{response.json.id}"
      every: 1m
      until: response.json.state == 'done'
      max: 1h
    reconcile:
      - none: "the test API can't be asked"
    manual_check: "look"
`

// Without the answer that says where to look, nothing can be followed.
func TestA202ThatIsCutIsUnknown(t *testing.T) {
	t.Parallel()
	whole := `{"id":"j1"}`
	for name, cut := range map[string]bool{"whole": false, "cut": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				if cut {
					rw.Header().Set("Content-Length", "1000")
				}
				rw.WriteHeader(http.StatusAccepted)
				_, _ = io.WriteString(rw, whole)
				if cut {
					_ = http.NewResponseController(rw).Flush()
					panic(http.ErrAbortHandler)
				}
			})
			w.use(watchedRules)
			answer := w.open("a").post("/jobs", `{"to":"bob"}`)
			m := w.mutation("a")
			if !cut {
				if answer.status != http.StatusAccepted || answer.body != whole || !m.Watching {
					t.Errorf("got %d %s; it is %s", answer.status, answer.body, m.State)
				}
				return
			}
			wantProblem(t, answer, "unknown-outcome", 424, "")
			if m.State != ledger.Indeterminate || m.Watching || m.Committed || m.Current().Verdict != ledger.VerdictUncertain {
				t.Errorf("it is %s by %+v", m.State, m.Current())
			}
		})
	}
}

// An API that is done at once says so by another status: there is nothing to follow then.
func TestASuccessThatIsNo202IsNotFollowed(t *testing.T) {
	t.Parallel()
	const whole = `{"id":"j1"}`
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, whole)
	})
	w.use(watchedRules)
	wantAnswer(t, w.open("a").post("/jobs", `{"to":"bob"}`), http.StatusOK, whole, false)
	if m := w.mutation("a"); m.State != ledger.Applied || m.Watching || m.Current().Verdict != ledger.VerdictApplied {
		t.Errorf("it is %s, followed: %t, by %+v", m.State, m.Watching, m.Current())
	}
}

// A 201 with the URL to look at is accepted, one without is done.
func TestA201IsFollowedWhereItSaysWhereToLook(t *testing.T) {
	t.Parallel()
	const whole = `{"id":"j1"}`
	for name, url := range map[string]string{"with the URL": "/operations/1?api-version=2", "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				if url != "" {
					rw.Header().Set("Azure-Asyncoperation", url)
				}
				rw.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(rw, whole)
			})
			w.use(strings.Replace(watchedRules, "/jobs/{response.json.id}", "{response.header['azure-asyncoperation']}", 1))
			wantAnswer(t, w.open("a").post("/jobs", `{"to":"bob"}`), http.StatusCreated, whole, false)
			m := w.mutation("a")
			if m.Watching != (url != "") || (m.State == ledger.Applied) != (url == "") || m.Result.Header["Azure-Asyncoperation"] != nil != (url != "") {
				t.Errorf("it is %s, followed: %t, by %+v", m.State, m.Watching, m.Current())
			}
		})
	}
}

// Accepted isn't applied, also where the answer that says where to look can't be kept.
func TestA202WhoseAnswerCantBeKeptIsUnknown(t *testing.T) {
	t.Parallel()
	w, _ := newTroubledWorld(t, func(s *troubled) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			s.bodies.Store(true)
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(rw, `{"id":"j1","pad":"`+strings.Repeat("x", ledger.InlineBody)+`"}`)
		}
	})
	w.use(watchedRules)
	wantProblem(t, w.open("a").post("/jobs", `{"to":"bob"}`), "unknown-outcome", 424, "")
	if m := w.mutation("a"); m.State != ledger.Indeterminate || m.Watching || m.Committed || m.Current().Verdict != ledger.VerdictUncertain {
		t.Errorf("it is %s by %+v", m.State, m.Current())
	}
}
