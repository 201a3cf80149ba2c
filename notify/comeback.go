package notify

import (
	"context"
	"slices"
)

// comeBack makes ready what an earlier process left, before the history is read on.
func (n *Notifier) comeBack(ctx context.Context) error {
	rewound, err := n.rewound(ctx)
	if err != nil || !rewound {
		return err
	}
	n.config.Log.Warn().Msg("the ledger's history ends before what was told of it: it is read from its present on, and what is open is told")
	n.began = false
	return nil
}

// rewound reports whether the ledger's history ends before the last event that was read: an
// older copy was put back, or a loss was accepted. New events have the numbers of those that
// are gone then, and would be taken for read.
func (n *Notifier) rewound(ctx context.Context) (bool, error) {
	cursor := n.queue.cursor()
	if cursor == 0 {
		return false, nil
	}
	events, err := n.config.Ledger.Events(ctx, "", cursor-1, 1)
	return len(events) == 0, err
}

// inOrder sorts messages that don't come from the history, which has them in order.
func inOrder(messages []Message) {
	slices.SortStableFunc(messages, func(a, b Message) int { return a.Timestamp.Compare(b.Timestamp) })
}
