package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// pastAfter is after how many tries of one message others are told past it. It may be the message that isn't taken, and
// not that nobody is there.
const pastAfter = 5

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
		if tries, wait := n.try(ctx, d, m); wait > 0 && !n.waits(ctx, d, tries >= pastAfter, wait) {
			return
		}
	}
}

// waits for the next try of the first message. Meanwhile it tells others past it, for as long as they are taken. It is
// false when ctx has ended.
func (n *Notifier) waits(ctx context.Context, d Destination, past bool, wait time.Duration) bool {
	next := n.config.After(wait)
	for {
		past = past && n.tellPast(ctx, d)
		select {
		case <-ctx.Done():
			return false
		case <-next:
			return true
		case <-n.wake[d.Name()]:
		}
	}
}

// tellPast tells what doesn't belong to the escalation of the first message, and reports
// whether all of it was taken.
func (n *Notifier) tellPast(ctx context.Context, d Destination) bool {
	for {
		m, ok := n.queue.past(d.Name())
		if !ok {
			return true
		}
		if err := n.hand(ctx, d, m); err != nil {
			return false
		}
	}
}

// try delivers the first message. It says how many tries there were, and how long to wait before the next one.
func (n *Notifier) try(ctx context.Context, d Destination, m Message) (tries int, wait time.Duration) {
	err := n.hand(ctx, d, m)
	if err == nil {
		return 0, 0
	}
	if ctx.Err() != nil {
		return 0, poll
	}
	tries = n.queue.failed(d.Name(), n.config.Now(), err.Error())
	n.config.Log.Warn().Err(err).Str("destination", d.Name()).Str("notification", m.ID).Int("tries", tries).Msg("not notified; trying again")
	return tries, backoff(tries)
}

// hand delivers one message and takes it out of the queue.
func (n *Notifier) hand(ctx context.Context, d Destination, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("message: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if err := d.Deliver(bounded, m, body); err != nil {
		return err
	}
	n.config.Log.Info().Str("destination", d.Name()).Str("notification", m.ID).Msg("notified")
	if err := n.queue.done(d.Name(), m.ID); err != nil {
		// What comes after it doesn't wait for that; repeats have the same id.
		n.config.Log.Warn().Err(err).Str("destination", d.Name()).Str("notification", m.ID).Msg("not written down as notified; a next start tells it again")
	}
	return nil
}

// backoff is the wait after a number of failed tries, from retryBase to retryCap.
func backoff(tries int) time.Duration {
	wait := retryBase
	for range min(tries-1, 20) {
		wait = min(2*wait, retryCap)
	}
	return wait
}
