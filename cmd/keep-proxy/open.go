package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/cli/managed"
)

// What --if-done takes.
const (
	ifDoneSkip = "skip"
	ifDoneFail = "fail"
	ifDoneRun  = "run"
)

// itemsMany is what --items takes besides one.
const itemsMany = "many"

// openFlags describe a run that is to be opened.
type openFlags struct {
	workflow   string
	item       string
	once       bool
	items      string
	attempt    int
	title      string
	mutations  string
	onFailure  string
	takeover   bool
	ifDone     string
	resumeHint string
	listener   bool
	ttl        time.Duration
}

// openNames are the names of these flags.
var openNames = []string{
	"workflow", "item", "once", "items", "attempt", "title", "mutations", "on-failure", "takeover", "if-done", "resume-hint", "listener", "ttl",
}

// given reports whether a run is described at all.
func (*openFlags) given(cmd *cobra.Command) bool {
	return slices.ContainsFunc(openNames, cmd.Flags().Changed)
}

func (o *openFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.workflow, "workflow", "", "the automation that the run belongs to")
	f.StringVar(&o.item, "item", "", "the unit of work that must not be done twice")
	f.BoolVar(&o.once, "once", false, "instead of --item: a re-run is new work")
	f.StringVar(&o.items, "items", "", "many instead of --item: each request names its item, as the user of the proxy's\naddress or in Keep-Item (default one)")
	f.IntVar(&o.attempt, "attempt", 0, "the item's current attempt (default that)")
	f.StringVar(&o.title, "title", "", "what people are shown")
	f.StringVar(&o.mutations, "mutations", "", "none, one or many (default many)")
	f.StringVar(&o.onFailure, "on-failure", "", "abort, or return to hand the script its failed answers (default abort)")
	f.BoolVar(&o.takeover, "takeover", false, "end the item's running run instead of refusing this one")
	f.StringVar(&o.ifDone, "if-done", "", "with an item that is done or skipped: skip the command, fail, or run it,\nreading only (default skip)")
	f.StringVar(&o.resumeHint, "resume-hint", "", "how a person starts the work again")
	f.BoolVar(&o.listener, "listener", false, "a proxy address of the run's own, which takes no credentials,\nfor clients that can't be given any")
	choices(cmd, "items", "one", itemsMany)
	choices(cmd, "mutations", "none", "one", "many")
	choices(cmd, "on-failure", "abort", "return")
	choices(cmd, "if-done", ifDoneSkip, ifDoneFail, ifDoneRun)
	f.DurationVar(&o.ttl, "ttl", 0, "end the run when nothing is heard of it for so long (default runs.ttl)")
}

// check wants a workflow, and one of item and once.
func (o *openFlags) check(command string) error {
	switch {
	case o.workflow == "":
		return usage("%s: --workflow is missing; name the automation", command)
	case !utf8.ValidString(o.workflow) || !utf8.ValidString(o.item) || !utf8.ValidString(o.title):
		return usage("%s: a name is no UTF-8; give it encoded, such as in percent-encoding", command)
	case o.items != "" && o.items != "one" && o.items != itemsMany:
		return usage("%s: --items %s is unknown; give one or many", command, o.items)
	case o.items == itemsMany && (o.once || o.item != "" || o.attempt != 0):
		return usage("%s: --items many excludes --item, --once and --attempt: each request names its item", command)
	case o.items == itemsMany:
	case o.once && o.item != "":
		return usage("%s: --item and --once exclude each other; give one of them", command)
	case !o.once && o.item == "":
		return usage("%s: --item is missing; name the unit of work, or say --once if a re-run is new work", command)
	case o.ifDone != "" && o.ifDone != ifDoneSkip && o.ifDone != ifDoneFail && o.ifDone != ifDoneRun:
		return usage("%s: --if-done %s is unknown; give skip, fail or run", command, o.ifDone)
	case o.ttl < 0:
		return usage("%s: --ttl %s is negative", command, o.ttl)
	}
	return nil
}

func (o *openFlags) request() wire.OpenRun {
	return wire.OpenRun{
		Workflow: o.workflow, Item: o.item, Once: o.once, Items: o.items, Attempt: o.attempt, Title: o.title,
		Mutations: o.mutations, OnFailure: o.onFailure, Takeover: o.takeover,
		TTL: wire.Duration(o.ttl), ResumeHint: o.resumeHint, IfDone: o.ifDone, Listener: o.listener,
	}
}

// surely opens the run under a key, and finds it where the answer is lost.
func (o *openFlags) surely(ctx context.Context, c *client.Client, key string, say func(string, ...any)) (*wire.OpenedRun, error) {
	return managed.OpenSurely(ctx, func(ctx context.Context) (*wire.OpenedRun, error) {
		return c.OpenRun(ctx, o.request(), key)
	}, say)
}

// newKey makes an Idempotency-Key.
func newKey() string { return rand.Text() }

// openAdvice says what to do about a refusal, by its name, where the refusal itself
// doesn't.
var openAdvice = map[string]string{
	"item-done": "nothing is left to do for it; keep-proxy items reopen or new-attempt allows more",
	"draining":  "keep-proxy resume ends it",
	"token":     "name the operator's token file with " + tokenVariable,
}

// openError says why no run was opened, and what to do.
func openError(err error) error {
	if errors.Is(err, managed.ErrOpenLost) {
		return fmt.Errorf("%w. If one was, it keeps its item busy until its time limit: see keep-proxy runs list --running, "+
			"or run the same command again with --takeover", err)
	}
	p, ok := errors.AsType[*client.Problem](err)
	if !ok {
		return fmt.Errorf("no run was opened: %w", err)
	}
	if advice, ok := openAdvice[p.Name()]; ok {
		return fmt.Errorf("no run was opened: %w To go on: %s", err, advice)
	}
	return fmt.Errorf("no run was opened: %w", err)
}
