package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// meaning are the flags that say which ledger, which work, or which records are meant.
var meaning = []string{
	"admin", "config", "connector", "data-dir", "item", "operation", "restored", "run", "workflow",
}

// notEmptied refuses such a flag that is given without a value, as a shell does for a
// variable that isn't set. Left out it has a meaning of its own, which is another one:
// every item for one, a new run's for that of an item, the ledger of the default folder,
// a ledger that isn't restored.
func notEmptied(cmd *cobra.Command, _ []string) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.String() == "" && slices.Contains(meaning, f.Name) {
			err = usage("%s: --%s is empty; give it a value, or leave it out", cmd.Name(), f.Name)
		}
	})
	return err
}
