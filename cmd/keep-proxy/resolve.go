package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// resolveFlags are the flags of resolve.
type resolveFlags struct {
	showFlags

	actions map[string]*bool
	force   bool
	newKey  bool
	result  string
	none    bool

	compensate bool
	object     string

	decider
	version int64

	all    bool
	filter client.Filter
}

// actionFlags are the flags that choose an action. --new-key is both an action and
// a part of --did-not-happen.
var actionFlags = []struct{ flag, action, help string }{
	{"check-again", wire.ActionCheckAgain, "ask the API again, from the beginning"},
	{"did-not-happen", wire.ActionDidNotHappen, "it did not take effect; the next run sends it again"},
	{"happened", wire.ActionHappened, "it took effect; needs --result or --no-result"},
	{"skip", wire.ActionSkip, "go on without it, for good"},
	{"accept-payload", wire.ActionAcceptPayload, "the refused payload is covered by the stored result"},
	{"acknowledge", wire.ActionAcknowledge, "close the question; what else follows is said with it"},
}

// newResolve makes the command by which a person decides.
func newResolve() *cobra.Command {
	f := &resolveFlags{actions: map[string]*bool{}}
	cmd := &cobra.Command{
		Use:   "resolve [ID | --all --connector C …] ACTION --reason TEXT",
		Short: "Decide what a person must decide; without ID, walk through what is open (--json: list it)",
		Long: "Records a person's decision. Without ID and ACTION it walks through what is open; --json lists that.\n" +
			"With ID alone it shows that mutation. On a terminal it then asks. Elsewhere it says what can be decided, and\n" +
			"exits 64.",
		Args: usageArgs(cobra.MaximumNArgs(1)),

		ValidArgsFunction: f.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && f.all:
				return usage("resolve: %s is one mutation, and --all is everything that the filters select; give one of them", args[0])
			case len(args) == 0 && !f.all:
				return f.interactive(cmd)
			}
			if len(args) == 1 && f.undecided() {
				return f.about(cmd, args[0])
			}
			return f.decide(cmd, args)
		},
	}
	f.bind(cmd)
	return cmd
}

func (f *resolveFlags) bind(cmd *cobra.Command) {
	f.showFlags.bind(cmd)
	flags := cmd.Flags()
	for _, a := range actionFlags {
		f.actions[a.action] = flags.Bool(a.flag, false, a.help)
	}
	flags.BoolVar(&f.newKey, "new-key", false, "send under a new vendor key; alone, or with --did-not-happen")
	flags.BoolVar(&f.force, "force", false, "with --did-not-happen: although a sending may still take effect")
	flags.StringVar(&f.result, "result", "", "with --happened: file with what the script shall get, such as\n"+
		"{\"status\": 201, \"headers\": {\"location\": \"/things/7\"}, \"body\": {\"id\": 7}},\n"+
		"body a text as it is, or JSON; - for standard input")
	flags.BoolVar(&f.none, "no-result", false, "with --happened: there is no result to give")
	f.decider.bind(cmd, "why; it is kept with the record", "who decides")
	cmd.PreRunE = nil // It asks for the reason where it asks for the decision.
	flags.Int64Var(&f.version, "version", 0, "the record's version that was looked at (default the one it has now)")
	flags.BoolVar(&f.all, "all", false, "everything open that the filters select")
	flags.StringVar(&f.filter.Connector, "connector", "", "with --all: only of this connector")
	flags.StringVar(&f.filter.Operation, "operation", "", "with --all: only of this operation")
	flags.StringVar(&f.filter.Workflow, "workflow", "", "with --all: only of this workflow")
	flags.StringVar(&f.filter.Item, "item", "", "with --all: only of this item")
	flags.BoolVar(&f.compensate, "compensate", false, "with --happened: it is to be undone, as the rule's compensate says; needs --object")
	flags.StringVar(&f.object, "object", "", "with --compensate: the API's own id of what is to be undone")
}

// person is who sits at the keyboard, as far as the system knows.
func person() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return os.Getenv("USER")
}

// decide records a decision that the flags spell out.
func (f *resolveFlags) decide(cmd *cobra.Command, args []string) error {
	decision, err := f.decision(cmd)
	if err != nil {
		return err
	}
	return f.with(cmd, func(ctx context.Context, c *connection) error {
		if f.all {
			return f.resolveAll(ctx, cmd, c, decision)
		}
		if len(args) == 0 {
			return usage("resolve: name the mutation, or say --all")
		}
		m, err := f.resolveOne(ctx, c, args[0], decision)
		if err != nil {
			return badFlags(cmd, err)
		}
		return f.show(cmd, []wire.Mutation{*m})
	})
}

// decision reads the decision from the flags.
func (f *resolveFlags) decision(cmd *cobra.Command) (wire.Resolve, error) {
	d := wire.Resolve{
		Reason: f.reason, Actor: f.actor, Version: f.version, Force: f.force, NoResult: f.none,
		Compensate: f.compensate, Object: f.object,
	}
	var chosen []string
	for _, a := range actionFlags {
		if *f.actions[a.action] {
			d.Action = a.action
			chosen = append(chosen, "--"+a.flag)
		}
	}
	if f.newKey && d.Action != wire.ActionDidNotHappen {
		d.Action = wire.ActionNewKey
		chosen = append(chosen, "--new-key")
	}
	d.NewKey = f.newKey && d.Action == wire.ActionDidNotHappen
	switch {
	case len(chosen) == 0:
		return d, usage("resolve: name the decision: one of %s", strings.Join(actionNames(), ", "))
	case len(chosen) > 1:
		return d, usage("resolve: %s exclude each other; give one of them", strings.Join(chosen, " and "))
	case f.compensate && f.all:
		return d, usage("resolve: --compensate is about one object; leave --all out")
	}
	if err := f.check(cmd, nil); err != nil {
		return d, err
	}
	if err := f.sound(cmd, d); err != nil {
		return d, err
	}
	if f.result != "" {
		result, err := readResult(cmd.InOrStdin(), f.result)
		if err != nil {
			return d, err
		}
		d.Result = result
	}
	return d, nil
}

// sound says by flags what the ledger would find wrong with the decision, before anything is opened.
func (f *resolveFlags) sound(cmd *cobra.Command, d wire.Resolve) error {
	command := ledger.Resolve{
		Action: ledger.Trigger(d.Action), Reason: d.Reason, Actor: d.Actor, Version: cmp.Or(d.Version, 1),
		Force: d.Force, NewKey: d.NewKey, NoResult: d.NoResult,
	}
	if f.result != "" {
		command.Result = &ledger.Result{Status: http.StatusOK} // The file is read later.
	}
	if d.Compensate {
		command.Compensate = &ledger.Owed{Object: d.Object}
	}
	invalid, ok := errors.AsType[*ledger.InvalidError](command.Check())
	if !ok {
		return nil
	}
	var faults []wire.Fault
	for _, fault := range invalid.Faults {
		faults = append(faults, wire.Fault{Where: fault.Field, What: fault.What, How: fault.How})
	}
	return usage("resolve: %s", inFlags(cmd, faults))
}

func actionNames() []string {
	names := make([]string, 0, len(actionFlags)+1)
	for _, a := range actionFlags {
		names = append(names, "--"+a.flag)
	}
	return append(names, "--new-key")
}

// resolveOne decides on the version that the person named, else on the present one.
func (f *resolveFlags) resolveOne(ctx context.Context, c *connection, id string, d wire.Resolve) (*wire.Mutation, error) {
	if d.Version == 0 {
		m, err := c.Mutation(ctx, id)
		if err != nil {
			return nil, err
		}
		id, d.Version = m.ID, m.Version
	}
	m, err := c.Resolve(ctx, id, d)
	return m, withActions(unsaid(err, "mutations show "+id))
}

// unsaid adds to a decision whose answer was lost that it may have been recorded, and by
// which command that is seen: who says it again may decide on something else by then.
func unsaid(err error, look string) error {
	if _, refused := errors.AsType[*client.Problem](err); err == nil || refused || errors.Is(err, client.ErrNotAsked) {
		return err
	}
	return fmt.Errorf("%w; whether it was recorded isn't known: look at keep-proxy %s before you decide again", err, look)
}

// notOpen is a decision that was refused, in flags where the API has words of its own.
type notOpen struct {
	text string
	err  error
}

// Error is what a person is told.
func (e *notOpen) Error() string { return e.text }

// Unwrap returns the refusal.
func (e *notOpen) Unwrap() error { return e.err }

// withActions says in flags what was refused, and what may be decided instead.
func withActions(err error) error {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok {
		return err
	}
	why, _, _ := strings.Cut(p.Error(), " Open now: ")
	action, rest, _ := strings.Cut(why, " ")
	notOpenNow := strings.HasPrefix(rest, "isn't possible")
	if notOpenNow {
		why = flagOf(action) + " " + rest
	}
	if len(p.Actions) == 0 {
		if notOpenNow {
			return &notOpen{why, err}
		}
		return err
	}
	names := make([]string, 0, len(p.Actions))
	for _, a := range p.Actions {
		names = append(names, flagOf(a.Action))
	}
	why = strings.Replace(why, "it needs force", "it needs --force", 1)
	return &notOpen{why + " Open are: " + strings.Join(names, ", "), err}
}

// flagOf is the flag that chooses an action.
func flagOf(action string) string {
	i := slices.IndexFunc(actionFlags, func(a struct{ flag, action, help string }) bool { return a.action == action })
	if i < 0 {
		return "--" + strings.ReplaceAll(action, "_", "-")
	}
	return "--" + actionFlags[i].flag
}

// resolveAll decides the same for everything open that the filters select. The
// first refusal ends it; what was decided before stays.
func (f *resolveFlags) resolveAll(ctx context.Context, cmd *cobra.Command, c *connection, d wire.Resolve) error {
	if f.filter.Connector == "" && f.filter.Workflow == "" {
		return usage("resolve: --all needs --connector or --workflow, so that nothing is decided by accident")
	}
	if d.Version != 0 {
		return usage("resolve: --version is one record's; leave it out with --all")
	}
	open, err := openMutations(ctx, c, f.filter)
	if err != nil {
		return err
	}
	done := make([]wire.Mutation, 0, len(open))
	for _, m := range open {
		d.Version = m.Version
		decided, err := c.Resolve(ctx, m.ID, d)
		if err != nil {
			return badFlags(cmd, errors.Join(f.show(cmd, done), fmt.Errorf("%s: %w", m.ID, withActions(unsaid(err, "mutations show "+m.ID)))))
		}
		done = append(done, *decided)
	}
	return f.show(cmd, done)
}

// openMutations collects what is escalated, whole, before anything is decided.
func openMutations(ctx context.Context, c *connection, filter client.Filter) ([]wire.Mutation, error) {
	filter.Escalated = true
	var open []wire.Mutation
	for m, err := range all(&filter.Cursor, func() (*wire.List[wire.Mutation], error) { return c.Mutations(ctx, filter) }) {
		if err != nil {
			return nil, err
		}
		open = append(open, *m)
	}
	return open, nil
}

// show tells what the decided mutations are now.
func (f *resolveFlags) show(cmd *cobra.Command, list []wire.Mutation) error {
	if f.json {
		return writeJSON(cmd.OutOrStdout(), wire.List[wire.Mutation]{Items: list})
	}
	for _, m := range list {
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is %s: %s\n", m.ID, stateWord(&m), printable(m.Target)); err != nil {
			return err
		}
	}
	return nil
}
