package notify

import (
	"context"
	"slices"
)

// comeBack makes ready what an earlier process left, before the history is read on.
func (n *Notifier) comeBack(ctx context.Context) error {
	if err := n.introduce(ctx); err != nil {
		return err
	}
	rewound, err := n.rewound(ctx)
	if err != nil || !rewound {
		return err
	}
	n.config.Log.Warn().Msg("the ledger's history ends before what was told of it: it is read from its present on, and what is open is told")
	n.queue.wentBack()
	n.began = false
	return nil
}

// rewound reports whether the ledger's history ends before the last event that was read. An older copy was put back, or
// a loss was accepted. Then new events have the numbers of those that are gone, and would be taken for read.
func (n *Notifier) rewound(ctx context.Context) (bool, error) {
	cursor := n.queue.cursor()
	if cursor == 0 {
		return false, nil
	}
	events, err := n.config.Ledger.Events(ctx, "", cursor-1, 1)
	return len(events) == 0, err
}

// introduce tells destinations that are new what the others were told and is open still. Such a
// one may have taken the place of one that never took a message, in which nobody was told.
func (n *Notifier) introduce(ctx context.Context) error {
	if !n.queue.introducing() {
		return nil
	}
	var messages []Message
	for _, s := range n.queue.standing() {
		m, err := n.record(ctx, s.Mutation)
		if err != nil {
			return err
		}
		messages = append(messages, n.stands(ctx, m, s))
	}
	for id, number := range n.queue.Open {
		m, err := n.record(ctx, id)
		if err != nil {
			return err
		}
		// Of what has ended or made way since, the history tells.
		if e := m.Escalation; m.Escalated() && e.Number == number {
			messages = append(messages, n.message(ctx, m, change{number: number, at: e.OpenedAt}))
		}
	}
	inOrder(messages)
	return n.queue.introduce(messages)
}

// inOrder sorts messages that don't come from the history, which has them in order.
func inOrder(messages []Message) {
	slices.SortStableFunc(messages, func(a, b Message) int { return a.Timestamp.Compare(b.Timestamp) })
}
