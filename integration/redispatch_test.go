package integration

import (
	"net/http"
	"testing"

	"keep-proxy/internal/fakes/script"
)

// TestWhatNeverHappenedIsSentAgainByItself is on_absent: redispatch from end to end:
// nobody asks again, and it happens once.
func TestWhatNeverHappenedIsSentAgainByItself(t *testing.T) {
	t.Parallel()
	for _, v := range overEach("close", "500") {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, v.protocol, redispatching)
			w.probed.arm(v.fault)
			w.open("a").transfer(w.probed, "R-1").wantRefusal("unknown-outcome", 424, "goes on asking")
			m := w.awaitState("a", "applied")
			if m.Result == nil || m.Result.Source != "answer" || len(m.Dispatches) != 2 {
				t.Errorf("result %+v after %d sendings", m.Result, len(m.Dispatches))
			}
			w.probed.want("transfer:R-1", 1, 2)
			a := w.open("a").transfer(w.probed, "R-1")
			if a.status != http.StatusCreated || a.header.Get("Keep-Replayed") != "true" {
				t.Errorf("the next run got %v", a)
			}
			w.probed.want("transfer:R-1", 1, 2)
		})
	}
}

// What is lost twice is not sent a third time by itself: a person is told, and the
// next run may ask.
func TestARedispatchIsNotRepeatedForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, redispatching)
	w.probed.armFault(script.Fault{Times: 2, Steps: []script.Step{{Do: script.Close}}})
	w.open("a").transfer(w.probed, "R-1").wantRefusal("unknown-outcome", 424, "goes on asking")
	w.poll("a person is told", func() bool {
		m := w.mutation("a")
		return m.State == "failed" && m.Escalation != nil && m.Escalation.Kind == "absent"
	})
	w.probed.want("transfer:R-1", 0, 2)
	w.open("a").transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
	w.probed.want("transfer:R-1", 1, 3)
}

// A script that asks while it is being sent again waits for that sending, and is no
// second one.
func TestARequestWaitsForTheRedispatchUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, redispatching)
	w.probed.armFault(script.Fault{Times: 1, Steps: []script.Step{{Do: script.Close}}})
	w.probed.armFault(script.Fault{Times: 1, Steps: []script.Step{{Do: script.Commit}, {Do: script.Wait, Hold: "answer"}, {Do: script.Answer}}})
	w.open("a").transfer(w.probed, "R-1").wantRefusal("unknown-outcome", 424, "goes on asking")
	w.probed.await("it is sent again", received("transfer:R-1", 2))
	answer := make(chan reply, 1)
	run := w.open("a")
	go func() { answer <- run.transfer(w.probed, "R-1") }()
	w.poll("the run has asked", func() bool { return w.app != nil && len(w.mutation("a").Dispatches) == 2 })
	w.probed.Release("answer")
	a := <-answer
	if a.status != http.StatusCreated || a.header.Get("Keep-Replayed") != "true" {
		t.Errorf("the waiting request got %v", a)
	}
	w.probed.want("transfer:R-1", 1, 2)
}
