package reconcilers

import (
	"testing"
	"time"
)

func TestDefaultSettings(t *testing.T) {
	t.Parallel()
	want := Settings{
		Inline: 10 * time.Second, Base: 10 * time.Second, Factor: 2, Cap: 10 * time.Minute, Jitter: 0.2, MaxAge: 24 * time.Hour,
		Ask: 30 * time.Second, MaxAnswer: 10 << 20, Rate: 5, Concurrency: 8, PerConnector: 4, Poll: 30 * time.Second,
	}
	if got := DefaultSettings(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSettingsAreBroughtIntoRange(t *testing.T) {
	t.Parallel()
	got := Settings{Factor: 0.5, Jitter: 7, Base: time.Hour, Cap: time.Minute, Concurrency: -1, Inline: -1}.filled()
	if got.Factor != 1 || got.Jitter != 1 || got.Cap != time.Hour || got.Concurrency != 8 {
		t.Errorf("factor %v, jitter %v, cap %v, concurrency %d; want 1, 1, 1h (base), 8",
			got.Factor, got.Jitter, got.Cap, got.Concurrency)
	}
	if got.Inline >= 0 {
		t.Errorf("inline %v; a negative one switches it off and must stay", got.Inline)
	}
}
