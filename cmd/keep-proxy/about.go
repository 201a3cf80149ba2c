package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"keep-proxy/admin/wire"
)

// undecided reports whether the flags name no decision, nor a part of one. The reason alone
// is none: whoever gave it is asked for the rest.
func (f *resolveFlags) undecided() bool {
	for _, chosen := range f.actions {
		if *chosen {
			return false
		}
	}
	return !f.all && !f.newKey && !f.force && !f.none && !f.compensate && f.result == "" && f.object == ""
}

// about is what the advice at a stop calls: it shows one mutation, and asks a person what
// they decide. Where nobody can be asked it is an error that the decision is missing.
func (f *resolveFlags) about(cmd *cobra.Command, id string) error {
	return f.with(cmd, func(ctx context.Context, c *connection) error {
		m, err := c.Mutation(ctx, id)
		if err != nil {
			return err
		}
		if f.json {
			return errors.Join(writeJSON(cmd.OutOrStdout(), m), undecided(m))
		}
		open, err := askedAbout(ctx, c, m)
		if err != nil {
			return err
		}
		if !isTerminal(cmd.InOrStdin()) || !isTerminal(cmd.OutOrStdout()) {
			return errors.Join(showMutation(cmd.OutOrStdout(), m, open, again(cmd)), undecided(m))
		}
		w := newWalk(cmd, f.actor)
		w.api, w.reason = c, f.reason
		err = w.mutation(ctx, m, open, f.version)
		if errors.Is(err, errLeft) {
			return nil
		}
		return err
	})
}

// undecided is the error that no decision was named, with those that are open.
func undecided(m *wire.Mutation) error {
	if len(m.Actions) == 0 {
		return usage("resolve: nothing is to be decided on %s, which is %s", m.ID, stateWord(m))
	}
	var flags []string
	for _, a := range m.Actions {
		flags = append(flags, actionFlag(a))
	}
	return usage("resolve: name the decision on %s, and --reason; open now: %s", m.ID, strings.Join(flags, ", "))
}

// mutation is the way through one mutation, whether it asks a person or not. version is the
// one that the person saw before; 0 for the one that is shown.
func (w *walk) mutation(ctx context.Context, m *wire.Mutation, open *wire.Escalation, version int64) error {
	if open == nil {
		// Those who look may decide before anybody is asked.
		open = &wire.Escalation{Mutation: m.ID, Version: m.Version, Actions: m.Actions}
		if err := showWithout(w.out, m, w.flags); err != nil {
			return err
		}
	} else if err := writeEscalation(w.out, *open); err != nil {
		return err
	}
	if version != 0 {
		open.Version = version
	}
	if len(m.Actions) == 0 {
		_, err := fmt.Fprintln(w.out, "\nNothing is to be decided on it.")
		return err
	}
	return w.question(ctx, *open)
}

// showWithout shows a mutation, and leaves its decisions to the questions that follow.
func showWithout(w io.Writer, m *wire.Mutation, flags string) error {
	bare := *m
	bare.Actions = nil
	return showMutation(w, &bare, nil, flags)
}
