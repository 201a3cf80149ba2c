package app

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestAStepThatTakesLongIsToldOf(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for took, want := range map[time.Duration][]string{
		900 * time.Millisecond: nil,
		12 * time.Second: {
			"recovery is taking long: 1s until now; nothing listens before it ends",
			"recovery is taking long: 11s until now; nothing listens before it ends",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var told []string
			a := &App{options: Options{Note: func(text string) { told = append(told, text) }}}
			err := a.telling("recovery", func() error {
				<-time.After(took)
				return cause
			})
			if !errors.Is(err, cause) || !slices.Equal(told, want) {
				t.Errorf("after %s told %q, %v", took, told, err)
			}
		})
	}
}
