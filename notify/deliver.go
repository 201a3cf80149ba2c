package notify

import (
	"context"
	"encoding/json"
	"time"
)

// deliver gives a destination its messages, one after the other.
func (n *Notifier) deliver(ctx context.Context, d Destination) {
	for {
		m, ok := n.queue.first(d.Name())
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-n.wake[d.Name()]:
			}
			continue
		}
		if wait := n.try(ctx, d, m); wait > 0 {
			select {
			case <-ctx.Done():
				return
			case <-n.config.After(wait):
			}
		}
	}
}

// try delivers one message, and says how long to wait before the next try.
func (n *Notifier) try(ctx context.Context, d Destination, m Message) time.Duration {
	body, err := json.Marshal(m)
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, Timeout)
		err = d.Deliver(bounded, m, body)
		cancel()
	}
	if err == nil {
		n.config.Log.Info().Str("destination", d.Name()).Str("notification", m.ID).Msg("notified")
		if err := n.queue.done(d.Name(), m.ID); err != nil {
			// What comes after it doesn't wait for that; repeats have the same id.
			n.config.Log.Warn().Err(err).Str("destination", d.Name()).Str("notification", m.ID).Msg("not written down as notified; a next start tells it again")
		}
		return 0
	}
	if ctx.Err() != nil {
		return poll
	}
	tries := n.queue.failed(d.Name(), n.config.Now(), err.Error())
	n.config.Log.Warn().Err(err).Str("destination", d.Name()).Str("notification", m.ID).Int("tries", tries).Msg("not notified; trying again")
	return backoff(tries)
}

// backoff is the wait after a number of failed tries, from retryBase to retryCap.
func backoff(tries int) time.Duration {
	wait := retryBase
	for range min(tries-1, 20) {
		wait = min(2*wait, retryCap)
	}
	return wait
}
