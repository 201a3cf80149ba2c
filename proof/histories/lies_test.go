package histories

import (
	"math/rand/v2"
	"time"
)

// lie is something that an API does that it should not.
type lie struct {
	fate    func(r *rand.Rand, matter string, f *fate)
	forgets time.Duration
}

func (l *lie) created(now time.Time) time.Time { return now }
func (l *lie) date(time.Time) string           { return "" }
func (l *lie) isBelieved() bool                { return false }
func (l *lie) lists(_ *api, all []*object, at int) ([]*object, int) {
	return all, at
}
