package app

import "time"

const (
	// patience is how long a step of a start may take before anybody is told.
	patience = time.Second
	// reminder is how often one that goes on is told of again.
	reminder = 10 * time.Second
)

// telling does a step of the start, and notes what takes long while it goes on: until it
// has ended nothing listens, and somebody may wait.
func (a *App) telling(what string, do func() error) error {
	ended, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		begun, next := time.Now(), time.NewTimer(patience)
		defer next.Stop()
		for {
			select {
			case <-ended:
				return
			case <-next.C:
				a.note(what + " is taking long: " + time.Since(begun).Round(time.Second).String() + " until now; nothing listens before it ends")
				next.Reset(reminder)
			}
		}
	}()
	err := do()
	close(ended)
	<-told
	return err
}
