package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// errLeft says that the person stopped answering; errBegun, in the middle of a decision.
var (
	errLeft  = errors.New("left")
	errBegun = errors.New("the input ended in the middle of a decision")
)

// interactive walks through what is open, one question after the other.
func (f *resolveFlags) interactive(cmd *cobra.Command) error {
	for action, chosen := range f.actions {
		if *chosen {
			return usage("resolve: name the mutation that %s is about, or say --all; without either, resolve asks", flagOf(action))
		}
	}
	if f.filter.Connector != "" || f.filter.Operation != "" {
		return usage("resolve: --connector and --operation go with --all, and a decision; without, every open question is asked")
	}
	return f.with(cmd, func(ctx context.Context, c *connection) error {
		if asJSON(cmd) { // A program can't be asked.
			filter := f.filter
			open, err := collected(&filter.Cursor, func() (*wire.List[wire.Escalation], error) { return c.Escalations(ctx, filter) })
			if err != nil {
				return err
			}
			return writeJSON(cmd.OutOrStdout(), wire.List[wire.Escalation]{Items: open})
		}
		return left(newWalk(cmd, c, f.actor).all(ctx, f.filter))
	})
}

// left makes it no error that a person stopped answering.
func left(err error) error {
	if errors.Is(err, errLeft) {
		return nil
	}
	return err
}

// walkAPI is what the walk needs of the admin API.
type walkAPI interface {
	Escalations(ctx context.Context, f client.Filter) (*wire.List[wire.Escalation], error)
	Mutations(ctx context.Context, f client.Filter) (*wire.List[wire.Mutation], error)
	Mutation(ctx context.Context, id string) (*wire.Mutation, error)
	Resolve(ctx context.Context, id string, r wire.Resolve) (*wire.Mutation, error)
}

// walk is a person's way through the open questions.
type walk struct {
	api   walkAPI
	in    *bufio.Scanner
	out   io.Writer
	actor string
	// flags are those by which another command finds the same ledger.
	flags string
	// reason is that of every decision; empty to ask for it.
	reason string
	// terminal says that lines come from a terminal, which cuts long ones.
	terminal bool
}

// newWalk makes a person's way through questions, on the command's own streams.
func newWalk(cmd *cobra.Command, api walkAPI, actor string) *walk {
	return &walk{
		api: api, in: bufio.NewScanner(cmd.InOrStdin()), out: cmd.OutOrStdout(), actor: actor, flags: again(cmd), terminal: isTerminal(cmd.InOrStdin()),
	}
}

// all asks every open question, those first for which most stands still, and of these the oldest.
func (w *walk) all(ctx context.Context, f client.Filter) error {
	open, err := collected(&f.Cursor, func() (*wire.List[wire.Escalation], error) { return w.api.Escalations(ctx, f) })
	if err != nil {
		return err
	}
	if len(open) == 0 {
		fmt.Fprintln(w.out, "Nothing waits for a person.")
	}
	slices.SortStableFunc(open, func(a, b wire.Escalation) int {
		return cmp.Or(cmp.Compare(stillness(b.Blocks), stillness(a.Blocks)), a.OpenedAt.Compare(b.OpenedAt))
	})
	for _, e := range open {
		m, err := w.api.Mutation(ctx, e.Mutation)
		if err != nil {
			return err
		}
		if err := w.show(func(p *page) { showEscalation(p, e); showFound(p, m) }); err != nil {
			return err
		}
		if err := w.question(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// stillness is more for what stops more; 0 for what stops nothing.
func stillness(b *wire.Blocks) int {
	if b == nil {
		return 0
	}
	return 1 + slices.Index([]string{"mutation", "item", "workflow"}, b.Scope)
}

// showFound shows what was sent beside what the API showed of it, by time.
func showFound(p *page, m *wire.Mutation) {
	rows := [][]string{{stamp(m.CreatedAt), "asked for", m.Request.Method + " " + m.Request.URL + " " + bodyWords(m.Request.Body)}}
	for _, o := range m.Observations {
		rows = append(rows, []string{stamp(o.At), o.Seen, clip(strings.Join(append(o.Objects, o.Evidence), " "), 600)})
	}
	if m.Request.Method == "" {
		return
	}
	section(p, "Asked for, and found", "AT\tWHAT\tCONTENT", rows, cells)
}

// bodyWords is a body as a person reads it, shortened.
func bodyWords(b wire.Body) string {
	if b.Missing == "" && utf8.Valid(b.Content) {
		return clip(string(b.Content), 600)
	}
	return fmt.Sprintf("(%d bytes)", max(b.Size, int64(len(b.Content))))
}

func (w *walk) show(write func(*page)) error { return showPage(w.out, w.flags, write) }

// question asks about what was shown, until it is answered or left for later.
func (w *walk) question(ctx context.Context, e wire.Escalation) error {
	fmt.Fprintln(w.out)
	begun := false
	for {
		fmt.Fprintln(w.out, "What do you decide?")
		for i, a := range e.Actions {
			fmt.Fprintf(w.out, "  %d  %s\n", i+1, onItem(e.Workflow, e.Item, actionLine(a, w.flags)))
		}
		fmt.Fprintln(w.out, "  0  nothing now")
		choice, err := w.choose(len(e.Actions))
		if err == nil && choice == 0 {
			return nil
		}
		done := false
		if err == nil {
			begun = true
			done, err = w.decide(ctx, e, e.Actions[choice-1])
		}
		if begun && errors.Is(err, errLeft) {
			return fmt.Errorf("resolve: %w: nothing was recorded for %s", errBegun, e.Mutation)
		}
		if err != nil || done {
			return err
		}
	}
}

// decide asks for what the action needs, and records it. A refusal is told, and
// asks again.
func (w *walk) decide(ctx context.Context, e wire.Escalation, a wire.Action) (bool, error) {
	d := wire.Resolve{Action: a.Action, Actor: w.actor, Reason: w.reason, Version: e.Version}
	if a.NeedsForce {
		yes, err := w.ask("A sending may still take effect. Type yes to decide this although: ")
		if err != nil {
			return false, err
		}
		if yes != "yes" {
			fmt.Fprintln(w.out, "Not decided.")
			return false, nil
		}
		d.Force = true
	}
	if a.Action == wire.ActionHappened {
		if given, err := w.result(ctx, &d, e); err != nil || !given {
			return false, err
		}
	}
	if d.Reason == "" {
		reason, err := w.ask("Why? It is kept with the record: ")
		if err != nil {
			return false, err
		}
		d.Reason = reason
	}
	m, err := w.api.Resolve(ctx, e.Mutation, d)
	if err != nil {
		p, ok := errors.AsType[*client.Problem](err)
		if !ok {
			return false, unsaid(err, "mutations show "+e.Mutation)
		}
		fmt.Fprintf(w.out, "Refused: %s\n", printable(onSameLedger(w.flags, said(nil, p))))
		// Another version means another question: it is asked when resolve runs again.
		return p.Name() == "version", nil
	}
	fmt.Fprintf(w.out, "%s is %s now.\n\n", m.ID, stateWord(m))
	return true, nil
}

// result asks what the script shall get; false leaves the decision.
func (w *walk) result(ctx context.Context, d *wire.Resolve, e wire.Escalation) (bool, error) {
	if err := w.template(ctx, e); err != nil {
		return false, err
	}
	for {
		text, err := w.ask("Status that the script shall get, such as 201 (empty: there is no result to give): ")
		if err != nil {
			return false, err
		}
		if text == "" {
			d.NoResult = true
			return true, nil
		}
		status, err := strconv.Atoi(text)
		if err != nil || status < 200 || status > 599 {
			fmt.Fprintln(w.out, "A status is a number from 200 to 599.")
			continue
		}
		body, given, err := w.body(e.Mutation)
		if err != nil || !given {
			return false, err
		}
		d.Result = &wire.Result{Status: status, Body: wire.Text(body)}
		if beginsJSON(body) {
			d.Result.Headers = wire.Header{"Content-Type": {"application/json"}}
		}
		return true, nil
	}
}

// template shows the newest good answer of the operation, for a person to start from.
func (w *walk) template(ctx context.Context, e wire.Escalation) error {
	list, err := w.api.Mutations(ctx, client.Filter{Connector: e.Connector, Operation: e.Operation, States: []string{"applied"}, Limit: 20})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list.Items, func(m wire.Mutation) bool { return m.ResultState == "known" })
	if i < 0 {
		return nil
	}
	m, err := w.api.Mutation(ctx, list.Items[i].ID)
	if err == nil && m.Result != nil {
		fmt.Fprintf(w.out, "%s was answered like this:\n  status %d\n  body %s\n", m.ID, m.Result.Status, bodyWords(m.Result.Body))
	}
	return err
}

// terminalLine is how many bytes of a line a terminal gives at most (N_TTY of Linux). The rest is lost without a
// word.
const terminalLine = 4095

// body asks for the answer's content; false leaves the decision. A part of it is refused: the first of several pasted
// lines, or the start of a long one. The other lines come as answers then: only whole JSON is taken.
func (w *walk) body(mutation string) (text string, given bool, err error) {
	text, err = w.ask("Body, on one line (empty: none): ")
	if err != nil || w.whole(text) {
		return text, err == nil, err
	}
	fmt.Fprintf(w.out, "That is only a part of it. Give all on one line, of fewer than %d bytes, or leave this, and give a file:\n"+
		"keep-proxy resolve%s %s --happened --result FILE --reason TEXT\n", terminalLine, w.flags, mutation)
	for {
		text, err = w.ask("Body, as JSON, on one line (empty: decide anew): ")
		if err != nil || text == "" {
			return "", false, err
		}
		if beginsJSON(text) && w.whole(text) {
			return text, true, nil
		}
	}
}

// whole reports whether all of a line came, and a line has all of it.
func (w *walk) whole(text string) bool {
	if w.terminal && len(text) >= terminalLine {
		return false
	}
	return !beginsJSON(text) || jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true))
}

// beginsJSON reports whether a text begins as a JSON object or list does.
func beginsJSON(text string) bool {
	return strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
}

// choose asks for a number from 0 to most.
func (w *walk) choose(most int) (int, error) {
	for {
		text, err := w.ask("Number: ")
		if err != nil {
			return 0, err
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= most {
			return n, nil
		}
		fmt.Fprintf(w.out, "Type a number from 0 to %d.\n", most)
	}
}

// ask returns one line; errLeft at the end of input.
func (w *walk) ask(question string) (string, error) {
	fmt.Fprint(w.out, question)
	if !w.in.Scan() {
		fmt.Fprintln(w.out)
		if err := w.in.Err(); err != nil {
			return "", fmt.Errorf("read the answer: %w", err)
		}
		return "", errLeft
	}
	return strings.TrimSpace(w.in.Text()), nil
}

// undecided reports whether the flags name no decision, nor a part of one. The reason alone is none: whoever gave it is
// asked for the rest.
func (f *resolveFlags) undecided() bool {
	for _, chosen := range f.actions {
		if *chosen {
			return false
		}
	}
	d := f.decision
	d.Version = 0
	return !f.all && f.result == "" && d == wire.Resolve{}
}

// about is what the advice at a stop calls: it shows one mutation, and asks a person what
// they decide. Where nobody can be asked it is an error that the decision is missing.
func (f *resolveFlags) about(cmd *cobra.Command, id string) error {
	return f.with(cmd, func(ctx context.Context, c *connection) error {
		m, err := c.Mutation(ctx, id)
		if err != nil {
			return err
		}
		if asJSON(cmd) || !isTerminal(cmd.InOrStdin()) || !isTerminal(cmd.OutOrStdout()) {
			return errors.Join(show(cmd, m, showMutation), undecided(m))
		}
		w := newWalk(cmd, c, f.actor)
		w.reason = f.reason
		return left(w.mutation(ctx, m, f.decision.Version))
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

// mutation leads through one mutation, whether it asks a person or not. The person saw the given version before; 0 is
// the one that is shown.
func (w *walk) mutation(ctx context.Context, m *wire.Mutation, version int64) error {
	// The questions that follow show the decisions.
	bare := *m
	bare.Actions = nil
	if err := w.show(func(p *page) { showMutation(p, &bare); showFound(p, &bare) }); err != nil {
		return err
	}
	if len(m.Actions) == 0 {
		_, err := fmt.Fprintln(w.out, "\nNothing is to be decided on it.")
		return err
	}
	return w.question(ctx, wire.Escalation{
		Mutation: m.ID, Version: cmp.Or(version, m.Version), Actions: m.Actions, Connector: m.Connector, Operation: m.Operation,
		Workflow: m.Workflow, Item: m.Item,
	})
}
