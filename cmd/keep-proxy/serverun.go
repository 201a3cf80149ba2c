package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/app"
)

// ownRun is the one run of a sidecar that is given a workflow and an item.
type ownRun struct {
	openFlags

	// bound are the names of its flags.
	bound []string
	// again is the flags by which other commands find the same ledger.
	again string
}

// retryOpen is the time between two tries to open a run in a scope that stands still.
const retryOpen = time.Second

// bind adds the flags that make sense for a run without a command.
func (o *ownRun) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.workflow, "workflow", "", "open one run, of this workflow, and print its proxy's address:\nfor a sidecar that has one script beside it")
	f.StringVar(&o.item, "item", "", "the item of that run")
	f.IntVar(&o.attempt, "attempt", 0, "the item's current attempt (default that)")
	f.StringVar(&o.ifDone, "if-done", "", "with an item that is done or skipped: fail, or run, reading only (default fail)")
	f.BoolVar(&o.listener, "listener", false, "give that run the address proxy.run_listen, which takes no credentials")
	o.bound = []string{"item", "attempt", "if-done", "listener"}
}

// check refuses what can't be opened.
func (o *ownRun) checkFlags(cmd *cobra.Command) error {
	if o.workflow == "" {
		for _, name := range o.bound {
			if cmd.Flags().Changed(name) {
				return usage("serve: --%s goes with --workflow, for a sidecar with one run", name)
			}
		}
		return nil
	}
	if o.ifDone == ifDoneSkip {
		return usage("serve: --if-done skip needs a command that is skipped; give fail or run")
	}
	if o.item == "" {
		return usage("serve: --item is missing; name the unit of work of the one run") // It knows no --once.
	}
	return o.check("serve")
}

// opensWhen says what is waited for, by the name of the refusal.
var opensWhen = map[string]string{
	"blocked":  "The run is opened when that is settled; see keep-proxy status",
	"draining": "The run is opened after keep-proxy resume",
}

// open opens the run. An earlier one of the item was that of a sidecar which is gone, as
// the ledger serves one at a time. While the scope stands still it is waited for: what is
// unknown is being found out by this very process, and it is this one that an operator who
// keeps work back tells to resume.
func (o *ownRun) open(ctx context.Context, c *client.Client, say func(string, ...any)) (*wire.OpenedRun, error) {
	q := o.request()
	q.Takeover = true
	if q.IfDone == "" {
		q.IfDone = ifDoneFail
	}
	for told := false; ; told = true {
		opened, err := c.OpenRun(ctx, q, newKey())
		problem, refused := errors.AsType[*client.Problem](err)
		waits := ""
		if err != nil && refused {
			waits = opensWhen[problem.Name()]
		}
		if waits == "" {
			if err != nil {
				err = noRun(openError(err))
			}
			return opened, err
		}
		if !told {
			say("%s", onSameLedger(o.again, commandsFor.Replace(problem.Detail)+" "+waits))
		}
		select {
		case <-ctx.Done():
			return nil, noRun(openError(err))
		case <-time.After(retryOpen):
		}
	}
}

// keep opens the run, tells its address, and keeps the run until ctx ends. It returns at
// once with an error if none can be opened.
func (o *ownRun) keep(ctx context.Context, a *app.App, w words) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	opened, err := o.open(ctx, c, w.sayf)
	if ctx.Err() != nil {
		return nil // Nobody waits for the run any more.
	}
	if err != nil {
		return err
	}
	if err := w.run(opened); err != nil {
		return err
	}
	limit := opened.Run.ExpiresAt.Sub(opened.Run.OpenedAt)
	beat := time.NewTicker(max(limit/3, 100*time.Millisecond))
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			// One that fails is followed by others. A run that is over stays so.
			_, _ = c.Heartbeat(ctx, opened.ID, wire.Heartbeat{})
		case <-ctx.Done():
			o.end(ctx, c, opened.ID)
			return nil
		}
	}
}

// endTimeout bounds the ending of the run at a shutdown: what isn't ended then is taken
// over at the next start.
const endTimeout = 5 * time.Second

// end ends the run without a word about its item, which stays open: a sidecar doesn't know
// what became of the script beside it.
func (o *ownRun) end(ctx context.Context, c *client.Client, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_, _ = c.EndRun(ctx, id, wire.EndRun{Reason: "its sidecar was stopped", Actor: person()})
}
