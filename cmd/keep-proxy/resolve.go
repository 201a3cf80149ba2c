package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// resolveFlags are the flags of resolve.
type resolveFlags struct {
	adminFlags
	decider

	actions  map[string]*bool
	decision wire.Resolve
	result   string
	all      bool
	filter   client.Filter
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
		Args: cobra.MaximumNArgs(1),

		ValidArgsFunction: f.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && f.all:
				return usage("resolve: %s is one mutation, and --all is everything that the filters select; give one of them", args[0])
			case len(args) == 0 && !f.all:
				return f.interactive(cmd)
			case len(args) == 1 && f.undecided():
				return f.about(cmd, args[0])
			}
			return f.decide(cmd, args)
		},
	}
	f.bind(cmd)
	return cmd
}

func (f *resolveFlags) bind(cmd *cobra.Command) {
	f.adminFlags.bind(jsonFlag(cmd))
	flags := cmd.Flags()
	for _, a := range actions {
		f.actions[a.action] = flags.Bool(flagOf(a.action)[2:], false, a.help)
	}
	flags.BoolVar(&f.decision.Force, "force", false, "with --did-not-happen: although a sending may still take effect")
	flags.StringVar(&f.result, "result", "", "with --happened: file with what the script shall get, such as\n"+
		"{\"status\": 201, \"headers\": {\"location\": \"/things/7\"}, \"body\": {\"id\": 7}},\n"+
		"body a text as it is, or JSON; - for standard input")
	flags.BoolVar(&f.decision.NoResult, "no-result", false, "with --happened: there is no result to give")
	f.decider.bind(cmd, "why; it is kept with the record", "who decides")
	cmd.PreRunE = nil // It asks for the reason where it asks for the decision.
	flags.Int64Var(&f.decision.Version, "version", 0, "the record's version that was looked at (default the one it has now)")
	flags.BoolVar(&f.all, "all", false, "everything open that the filters select")
	flags.StringVar(&f.filter.Connector, "connector", "", "with --all: only of this connector")
	flags.StringVar(&f.filter.Operation, "operation", "", "with --all: only of this operation")
	flags.StringVar(&f.filter.Workflow, "workflow", "", "with --all: only of this workflow")
	flags.StringVar(&f.filter.Item, "item", "", "with --all: only of this item")
	flags.BoolVar(&f.decision.Compensate, "compensate", false, "with --happened: it is to be undone, as the rule's compensate says; needs --object")
	flags.StringVar(&f.decision.Object, "object", "", "with --compensate: the API's own id of what is to be undone")
}

// decide records a decision that the flags spell out. The first refusal ends it; what was decided before stays.
func (f *resolveFlags) decide(cmd *cobra.Command, args []string) error {
	if err := f.read(cmd); err != nil {
		return err
	}
	return f.with(cmd, func(ctx context.Context, c *connection) error {
		open, err := f.chosen(ctx, c, args)
		if err != nil {
			return badFlags(cmd, err)
		}
		done := []wire.Mutation{}
		for _, m := range open {
			d := f.decision
			d.Version = m.Version
			decided, err := c.Resolve(ctx, m.ID, d)
			err = withActions(unsaid(err, "mutations show "+m.ID))
			if err != nil && f.all {
				err = errors.Join(f.show(cmd, done), fmt.Errorf("%s: %w", m.ID, err))
			}
			if err != nil {
				return badFlags(cmd, err)
			}
			done = append(done, *decided)
		}
		return f.show(cmd, done)
	})
}

// chosen are the mutations to decide on, at the version that the person named, else at the present one.
func (f *resolveFlags) chosen(ctx context.Context, c *connection, args []string) ([]wire.Mutation, error) {
	switch {
	case f.all:
		f.filter.Escalated = true
		// All of them are read before anything is decided.
		return collected(&f.filter.Cursor, func() (*wire.List[wire.Mutation], error) { return c.Mutations(ctx, f.filter) })
	case f.decision.Version != 0:
		return []wire.Mutation{{ID: args[0], Version: f.decision.Version}}, nil
	}
	m, err := c.Mutation(ctx, args[0])
	if err != nil {
		return nil, err
	}
	return []wire.Mutation{*m}, nil
}

// read reads the decision from the flags.
func (f *resolveFlags) read(cmd *cobra.Command) (err error) {
	d := &f.decision
	d.Reason, d.Actor = f.reason, f.actor
	// A new key is a decision by itself, and a part of this one.
	d.NewKey = *f.actions[wire.ActionNewKey] && *f.actions[wire.ActionDidNotHappen]
	var known, chosen []string
	for _, a := range actions {
		known = append(known, flagOf(a.action))
		if *f.actions[a.action] && (!d.NewKey || a.action != wire.ActionNewKey) {
			d.Action = a.action
			chosen = append(chosen, flagOf(a.action))
		}
	}
	switch {
	case len(chosen) == 0:
		return usage("resolve: name the decision: one of %s", strings.Join(known, ", "))
	case len(chosen) > 1:
		return usage("resolve: %s exclude each other; give one of them", strings.Join(chosen, " and "))
	case f.all && d.Compensate:
		return usage("resolve: --compensate is about one object; leave --all out")
	}
	if err := f.check(cmd, nil); err != nil {
		return err
	}
	if err := f.sound(cmd, *d); err != nil {
		return err
	}
	switch {
	case f.all && f.filter.Connector == "" && f.filter.Workflow == "":
		return usage("resolve: --all needs --connector or --workflow, so that nothing is decided by accident")
	case f.all && d.Version != 0:
		return usage("resolve: --version is one record's; leave it out with --all")
	case f.result != "":
		d.Result, err = readResult(cmd.InOrStdin(), f.result)
	}
	return err
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

// unsaid says of a decision whose answer was lost that it may have been recorded. It names the command that shows it.
// A second decision may be about something else by then.
func unsaid(err error, look string) error {
	if _, refused := errors.AsType[*client.Problem](err); err == nil || refused || errors.Is(err, client.ErrNotAsked) {
		return err
	}
	return fmt.Errorf("%w; whether it was recorded isn't known: look at keep-proxy %s before you decide again", err, look)
}

// notOpen is a refused decision in the words of flags.
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
	var names []string
	for _, a := range p.Actions {
		names = append(names, flagOf(a.Action))
	}
	why = strings.Replace(why, "it needs force", "it needs --force", 1)
	return &notOpen{why + " Open are: " + strings.Join(names, ", "), err}
}

// show tells what the decided mutations are now.
func (*resolveFlags) show(cmd *cobra.Command, list []wire.Mutation) error {
	return show(cmd, wire.List[wire.Mutation]{Items: list}, func(p *page, list wire.List[wire.Mutation]) {
		for _, m := range list.Items {
			p.sayf("%s is %s: %s", m.ID, stateWord(&m), printable(m.Target))
		}
	})
}

// given is the answer that a person gives, as its file has it. What the API shows of a result can be given back. Its
// content can be written as the JSON that it is.
type given struct {
	Status  int            `json:"status"`
	Headers wire.Header    `json:"headers,omitzero"`
	Body    jsontext.Value `json:"body,omitzero"`
	// Source and Trailers are for the API to refuse.
	Source   string      `json:"source,omitzero"`
	Trailers wire.Header `json:"trailers,omitzero"`
}

// readResult reads the answer that a script shall get.
func readResult(stdin io.Reader, name string) (*wire.Result, error) {
	content, err := readNamed(stdin, name)
	if err != nil {
		return nil, fmt.Errorf("--result: %w", err)
	}
	result, err := resultOf(content)
	if err != nil {
		return nil, fmt.Errorf(`--result: %s: %w; write {"status": 201, "headers": {…}, "body": …}, where body is a text or JSON`, name, err)
	}
	return result, nil
}

func resultOf(content []byte) (*wire.Result, error) {
	var g given
	if err := json.Unmarshal(content, &g, json.RejectUnknownMembers(true)); err != nil {
		return nil, misread(err)
	}
	out := &wire.Result{Status: g.Status, Headers: g.Headers, Source: g.Source, Trailers: g.Trailers}
	if len(g.Body) == 0 || json.Unmarshal(g.Body, &out.Body) == nil {
		return out, nil
	}
	// What is none of the API's own forms is the answer itself.
	if err := g.Body.Compact(); err != nil {
		return nil, misread(err)
	}
	out.Body = wire.Body{Content: g.Body}
	if !hasField(out.Headers, "Content-Type") {
		if out.Headers == nil {
			out.Headers = wire.Header{}
		}
		out.Headers["Content-Type"] = []string{"application/json"}
	}
	return out, nil
}

// misread says what is wrong with a file, in the file's words and not in those of the program.
func misread(err error) error {
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("it is no valid JSON at byte %d", s.ByteOffset)
	}
	s, ok := errors.AsType[*json.SemanticError](err)
	where := ""
	if ok {
		where = strings.TrimPrefix(string(s.JSONPointer), "/")
	}
	switch {
	case where == "":
		return errors.New("it is no JSON object")
	case errors.Is(s.Err, json.ErrUnknownName):
		return fmt.Errorf("%s is unknown", where)
	case where == "headers":
		return errors.New("headers has a value that is neither a string nor a list of strings")
	}
	return fmt.Errorf("%s has a value that doesn't fit", where)
}
