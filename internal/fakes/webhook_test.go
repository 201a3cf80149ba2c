package fakes_test

import (
	"testing"

	"keep-proxy/internal/fakes/apitest"
	"keep-proxy/internal/fakes/oracle"
)

func TestEveryDeliveryIsAnEffect(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, api(t, "webhook"))
	b.Do("POST", "/hook/orders/paid", "same").Is(200, "ok")
	b.Do("POST", "/hook/orders/paid", "same").Is(200, "ok")
	b.Do("DELETE", "/hook/orders/paid", "").Is(200, "ok")
	b.Do("POST", "/hook/other", "").Is(200, "ok")
	tally := b.Counted()
	if tally.Effects("hook:orders/paid") != 3 || tally.Effects("hook:other") != 1 {
		t.Errorf("effects %d and %d, want 3 and 1", tally.Effects("hook:orders/paid"), tally.Effects("hook:other"))
	}
	if got := tally.Twice(); len(got) != 1 || got[0] != "hook:orders/paid" {
		t.Errorf("twice: %v", got)
	}
}

func TestNothingCanBeRead(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, api(t, "webhook"))
	b.Do("POST", "/hook/x", "hello").Is(200, "ok")
	b.Do("GET", "/hook/x", "").Is(405, "can't be read")
	if n := len(b.Counted().Of(oracle.KindEffect)); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

func TestFailuresInside(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, api(t, "webhook"))
	b.ArmNamed("own-500")
	b.Do("POST", "/hook/x", "a").Is(500, "")
	b.ArmNamed("commit-own-500")
	b.Do("POST", "/hook/x", "b").Is(500, "")
	if n := b.Counted().Effects("hook:x"); n != 1 {
		t.Errorf("%d effects, want that of the second", n)
	}
}
