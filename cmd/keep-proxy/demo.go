package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"keep-proxy/cli/demo"
)

// newDemo makes the command that plays what the program is for.
func newDemo() *cobra.Command {
	var exit, builtIn bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play lost answers and a killed proxy against a bank on loopback",
		Long: "Four acts, each with the bank's own books at its end. Then the bank and the proxy stay up for you\n" +
			"to try, until Ctrl-C. Everything is on 127.0.0.1 and in a temporary folder, which is removed.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("demo: %w", err)
			}
			o := demo.Options{Self: self, Out: cmd.OutOrStdout(), BuiltIn: builtIn}
			if !exit {
				o.Stay = stay(cmd.OutOrStdout(), self)
			}
			err = demo.Run(ctx, o)
			if errors.Is(err, context.Canceled) {
				return quietly(128 + int(syscall.SIGINT))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&exit, "exit", false, "end after the last act")
	cmd.Flags().BoolVar(&builtIn, "built-in-client", false, "use the built-in client although sh and curl are there")
	return cmd
}

// stay tells how to use what still runs, and waits.
func stay(out io.Writer, self string) func(context.Context, string, string) error {
	return func(ctx context.Context, config, bank string) error {
		fmt.Fprintf(out, "\nBank and proxy stay up until Ctrl-C. From another terminal:\n\n"+
			"  %s run --config %s --workflow try --item 1 --keep-open -- \\\n"+
			"    curl -sS -i -H 'Content-Type: application/json' \\\n"+
			"    -d '{\"from\":\"alice\",\"to\":\"bob\",\"amount\":4200,\"currency\":\"EUR\",\"reference\":\"try-1\"}' %s/transfers\n\n"+
			"Run it twice: the second answer is the recorded one (Keep-Replayed), and bob is paid once.\n",
			quoted(self), quoted(config), bank)
		<-ctx.Done()
		return nil
	}
}

// newDemoClient makes the demo's script for machines without sh or curl.
func newDemoClient() *cobra.Command {
	return &cobra.Command{
		Use: demo.ClientCommand, Hidden: true, Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Client(cmd.Context(), os.Getenv, cmd.OutOrStdout())
		},
	}
}
