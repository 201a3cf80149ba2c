package notify

import (
	"context"
	"errors"
	"sync"
)

// Last tells what there is to tell before the process ends. That may be right after an escalation was opened. Call it
// once Run has returned. Until ctx ends, each destination gets what waits for it. One that fails, or failed when this
// process tried it last, keeps that for the next process. The number of its tries is kept. Otherwise processes that end
// at once would never tell others past a message that isn't taken.
func (n *Notifier) Last(ctx context.Context) error {
	err := n.read(ctx)
	if err == nil {
		err = n.stand(ctx)
	}
	var all sync.WaitGroup
	for _, d := range n.config.Destinations {
		all.Go(func() { n.last(ctx, d) })
	}
	all.Wait()
	return errors.Join(err, n.queue.keepTries())
}

// last gives a destination what waits for it, up to what it doesn't take.
func (n *Notifier) last(ctx context.Context, d Destination) {
	for m, ok := n.queue.first(d.Name()); ok && !n.queue.failing(d.Name()); m, ok = n.queue.first(d.Name()) {
		if _, wait := n.try(ctx, d, m); wait > 0 {
			break
		}
	}
	if n.queue.tries(d.Name()) >= pastAfter {
		n.tellPast(ctx, d)
	}
}
