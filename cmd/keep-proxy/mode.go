package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// modeCommand is one that tells the proxy whether to work.
type modeCommand struct {
	use, short, long string
	set              func(*client.Client, context.Context, wire.SetMode) (*wire.Mode, error)
	// lives says that it needs a running proxy, since it ends with it.
	lives bool
}

// newModes makes pause, drain and resume.
func newModes() []*cobra.Command {
	return []*cobra.Command{
		modeCommand{
			use: "pause --reason TEXT", short: "Send no mutation until resume",
			long: "Keeps mutations back: they get 503 draining, and may be tried again. Stored answers and reads go on. No run\n" +
				"is opened, and no outcome is asked about. It holds after a restart too. What was being sent ends: once no\n" +
				"mutations and no tries are under way, nothing is sent.",
			set: (*client.Client).Pause,
		}.command(),
		modeCommand{
			use: "drain --reason TEXT", short: "Take no requests, and let those under way end",
			long: "Keeps every new request back with 503 draining, reads too, until resume or a restart. Once no requests and\n" +
				"no tries are under way, the proxy can be stopped, and no answer is cut.",
			set: (*client.Client).Drain, lives: true,
		}.command(),
		modeCommand{use: "resume --reason TEXT", short: "End a pause, or draining", set: (*client.Client).Resume}.command(),
	}
}

func (m modeCommand) command() *cobra.Command {
	var s showFlags
	var d decider
	cmd := &cobra.Command{
		Use: m.use, Short: m.short, Long: m.long, Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return answer(&s, cmd, func(ctx context.Context, c *connection) (*wire.Mode, error) {
				if m.lives && c.release != nil {
					return nil, usage("%s: no proxy runs for %s, so nothing is under way; keep-proxy pause holds for the next one",
						cmd.Name(), c.config.Ledger.Dir)
				}
				return m.set(c.Client, ctx, wire.SetMode{Reason: d.reason, Actor: d.actor})
			}, showMode)
		},
	}
	s.bind(cmd)
	d.bind(cmd, "why; kept in the history, and told to whoever is refused", "who says so")
	return cmd
}

func showMode(w io.Writer, m *wire.Mode) error {
	return facts(w,
		"mode", modeWords(m, time.Now()),
		"requests under way", fmt.Sprint(m.Requests),
		"mutations under way", fmt.Sprint(m.Mutations),
		"tries under way", fmt.Sprint(m.Tries),
	)
}

// modeWords says since when work is kept back, and why.
func modeWords(m *wire.Mode, now time.Time) string {
	if m.Since.IsZero() {
		return m.Mode
	}
	return fmt.Sprintf("%s since %s (%s) by %s: %s", m.Mode, stamp(m.Since), ago(now, m.Since), printable(m.Actor), printable(m.Reason))
}

// halted reports whether work is kept back.
func halted(m *wire.Mode) bool { return m != nil && m.Mode != wire.ModeServing }
