package app_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/fakes"
)

// awaited is a context that says when somebody waits for its end.
type awaited struct {
	context.Context
	looked chan struct{}
}

func (w awaited) Done() <-chan struct{} {
	select {
	case w.looked <- struct{}{}:
	default:
	}
	return w.Context.Done()
}

// pay is a transfer that the bank holds back until its gate "hang" is released: it returns once
// the bank has it. The answer's status comes later, 0 for none.
func pay(t *testing.T, bank *fakes.Fake, client *http.Client) <-chan int {
	t.Helper()
	if err := bank.ArmNamed("hang"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan int, 1)
	go func() {
		resp, err := client.Post(bank.URL()+"/transfers", "application/json", strings.NewReader(
			`{"from":"ann","to":"bob","amount":1250,"currency":"EUR","reference":"R-1"}`))
		if err != nil {
			answered <- 0
			return
		}
		_ = resp.Body.Close()
		answered <- resp.StatusCode
	}()
	for deadline := time.Now().Add(patience); len(bank.Armed()) > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the bank gets no transfer")
		}
	}
	return answered
}

// What is being sent when the program is to end is sent, recorded and answered to its end: the
// next start has its result.
func TestStoppingLetsASendingEnd(t *testing.T) {
	t.Parallel()
	bank, c := bankAndSettings(t, t.TempDir())
	a := start(t, c)
	_, client := openRun(t, a, c, "a")
	answered := pay(t, bank, client)
	const looks = 3
	waiting, ended := awaited{t.Context(), make(chan struct{}, looks)}, make(chan error, 1)
	go func() { ended <- a.Stop(waiting) }()
	for range looks {
		select {
		case err := <-ended:
			t.Fatalf("stopping waited for nothing: %v", err)
		case <-waiting.looked:
		}
	}
	bank.Release("hang")
	if status := <-answered; status != http.StatusCreated {
		t.Errorf("the script got %d", status)
	}
	if err := <-ended; err != nil {
		t.Errorf("it stopped with %v", err)
	}
	again := start(t, c)
	_, client = openRun(t, again, c, "a", "takeover")
	if status, text, header := transfer(t, client, bank.URL(), "R-1"); status != http.StatusCreated || header.Get("Keep-Replayed") != "true" {
		t.Errorf("after the next start: %d %s %v", status, text, header)
	}
	tally, err := bank.Tally()
	if err != nil {
		t.Fatal(err)
	}
	if n := tally.Effects("transfer:R-1"); n != 1 {
		t.Errorf("the money moved %d times", n)
	}
}

// Who stops it is told what the time was too short for.
func TestStoppingTooSoonSaysSo(t *testing.T) {
	t.Parallel()
	bank, c := bankAndSettings(t, t.TempDir())
	a := start(t, c)
	_, client := openRun(t, a, c, "a")
	answered := pay(t, bank, client)
	over, end := context.WithCancel(t.Context())
	end()
	if err := a.Stop(over); !errors.Is(err, context.Canceled) {
		t.Errorf("it stopped with %v", err)
	}
	if status := <-answered; status != 0 {
		t.Errorf("the script got %d", status)
	}
	bank.Release("hang")
}
