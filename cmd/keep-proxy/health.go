package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/cli/serving"
)

// healthTimeout bounds a probe.
const healthTimeout = 5 * time.Second

// newHealth makes the probe for containers.
func newHealth() *cobra.Command {
	var a showFlags
	var live bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Exit 0 if the proxy would carry a mutation now",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
			defer cancel()
			// These two answers need no token.
			found, err := a.endpoint(cmd)
			if err != nil {
				return err
			}
			c, err := client.New(found)
			if err != nil {
				return err
			}
			defer c.Close()
			probe := c.Readyz
			if live {
				probe = c.Healthz
			}
			err = probe(ctx)
			if a.json {
				return a.tell(cmd, err)
			}
			if err != nil {
				return fmt.Errorf("health: %w", err)
			}
			return nil
		},
	}
	a.bind(cmd)
	cmd.Flags().BoolVar(&live, "live", false, "ask only whether the process answers")
	return cmd
}

// tell writes a probe's answer as JSON.
func (s *showFlags) tell(cmd *cobra.Command, answer error) error {
	out := struct {
		OK     bool   `json:"ok"`
		Detail string `json:"detail,omitzero"`
	}{OK: answer == nil}
	if answer != nil {
		out.Detail = said(nil, answer)
	}
	if err := writeJSON(cmd.OutOrStdout(), out); err != nil || answer == nil {
		return err
	}
	return quietly(codeFailed)
}

// endpoint is the API, without opening anything.
func (a *adminFlags) endpoint(cmd *cobra.Command) (client.Config, error) {
	if url := a.explicit(); url != "" {
		return endpoint(url, nil)
	}
	c, err := a.load(cmd)
	if err != nil {
		return client.Config{}, err
	}
	state, err := serving.Find(c.Ledger.Dir)
	if err != nil {
		return client.Config{}, err
	}
	if state == nil {
		return client.Config{}, noProxy(cmd, c)
	}
	return endpoint(state.Admin, state)
}
