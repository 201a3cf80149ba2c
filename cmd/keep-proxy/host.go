package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/app"
	"keep-proxy/cli/serving"
	"keep-proxy/config"
)

// host is the proxy that a run goes through: a running one, or one that this
// process embeds.
type host struct {
	*connection

	// embedded says that a run holds the proxy, this one or another.
	embedded bool
	// share keeps an embedded proxy from ending; nil with any other.
	share *serving.Participant
	// own and announced are set if this process embeds it.
	own       *app.App
	announced *serving.Announcement
}

// host finds the proxy, joins another run's, or embeds one.
func (f *runFlags) host(ctx context.Context, cmd *cobra.Command, c config.Config) (*host, error) {
	if url := f.explicit(); url != "" {
		made, err := dial(c, url, tokenFile(c), nil)
		if err != nil {
			return nil, err
		}
		return &host{connection: made}, nil
	}
	if err := ensureDir(c); err != nil {
		return nil, err
	}
	return app.WhileLocked(ctx, always, func() (*host, error) { return joinOrEmbed(ctx, cmd, c) })
}

// joinOrEmbed takes a share first: what is found then can't end before it is used.
func joinOrEmbed(ctx context.Context, cmd *cobra.Command, c config.Config) (*host, error) {
	share, err := serving.Join(ctx, c.Ledger.Dir)
	if err != nil {
		return nil, err
	}
	state, err := serving.Find(c.Ledger.Dir)
	if err == nil && state == nil {
		h, err := embed(ctx, cmd, c)
		if err != nil {
			share.Leave()
			return nil, err
		}
		h.share = share
		return h, nil
	}
	if err != nil {
		share.Leave()
		return nil, err
	}
	made, err := dial(c, state.Admin, tokenOf(state), state)
	if err != nil {
		share.Leave()
		return nil, err
	}
	if !state.Embedded {
		share.Leave()
		return &host{connection: made}, nil
	}
	return &host{connection: made, embedded: true, share: share}, nil
}

// embed starts a proxy in this process.
func embed(ctx context.Context, cmd *cobra.Command, c config.Config) (*host, error) {
	c = app.Embedded(c)
	a, err := app.New(ctx, app.Options{
		Config: c, Version: version(), Log: quietLog(c.Log, cmd.ErrOrStderr()), Note: notes(cmd.ErrOrStderr()), Trace: true,
		Flags: anywhere(cmd),
	})
	if err != nil {
		return nil, err
	}
	if err := a.Start(ctx); err != nil {
		return nil, err
	}
	announced, err := serving.Announce(c.Ledger.Dir, stateOf(a, c, true))
	if err != nil {
		return nil, errors.Join(err, stop(ctx, a))
	}
	made, err := a.Client()
	if err != nil {
		return nil, errors.Join(err, announced.Withdraw(), stop(ctx, a))
	}
	return &host{connection: &connection{Client: made, config: c}, embedded: true, own: a, announced: announced}, nil
}

// leave lets the proxy go. One that this process embeds ends with the last run
// that joined it, which is told by waits; a person who can't wait ends it, and with it
// their runs.
func (h *host) leave(ctx context.Context, waits func()) error {
	h.Close()
	if h.share == nil {
		return nil
	}
	defer h.share.Leave()
	if h.own == nil {
		return nil
	}
	err := h.alone(ctx, waits)
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, h.announced.Withdraw(), stop(ctx, h.own))
}

// tellAfter is how long other runs are waited for in silence.
const tellAfter = time.Second

// alone returns when no other run has a share any more, or ctx ends.
func (h *host) alone(ctx context.Context, waits func()) error {
	last := make(chan error, 1)
	go func() { last <- h.share.Last(ctx) }()
	silence := time.NewTimer(tellAfter)
	defer silence.Stop()
	select {
	case err := <-last:
		return err
	case <-silence.C:
		waits()
		return <-last
	}
}

// Close lets the connection go.
func (h *host) Close() { h.Client.Close() }
