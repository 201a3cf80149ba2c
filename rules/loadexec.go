package rules

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Bounds and defaults of a program that is asked.
const (
	defaultExecTimeout = 30 * time.Second
	maxExecTimeout     = 10 * time.Minute
	defaultExecMemory  = 512 << 20
	defaultExecOutput  = 1 << 20
	maxExecOutput      = 64 << 20
)

// Exec is a program that says what happened.
type Exec struct {
	// Command is the program and its arguments, as they are; no shell reads them.
	Command []string
	// Timeout, Memory and Output bound it; the last two are in bytes.
	Timeout        time.Duration
	Memory, Output int64
	// Tie is by what the program recognises an object; never content.
	Tie Tie
	// AbsenceIsProof says whether its word that nothing is there is proof.
	AbsenceIsProof bool
}

// exec reads a program: the command alone, or a map; nil when it has none.
func (d *decoder) exec(n *yaml.Node, key string) *Exec {
	e := &Exec{Timeout: defaultExecTimeout, Memory: defaultExecMemory, Output: defaultExecOutput, Tie: TieUnique}
	if n.Kind == yaml.SequenceNode {
		e.Command = d.command(n, key)
		return e.orNil()
	}
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" && d.plain(n, key) {
		d.fail("type", key, n, "must be a list of the program and its arguments, or a map with command",
			"write ["+strings.Join(strings.Fields(printable(n.Value)), ", ")+"]")
		return nil
	}
	m := d.object(n, key, levelExec)
	if n.Kind != yaml.MappingNode {
		return nil
	}
	if v, ok := d.need(n, m, key, "command"); ok {
		e.Command = d.command(v, join(key, "command"))
	}
	if v := m["timeout"]; v != nil {
		if e.Timeout = d.duration(v, join(key, "timeout")); e.Timeout > maxExecTimeout {
			d.fail("value", join(key, "timeout"), v, "is more than a program may take", "write at most "+maxExecTimeout.String())
		}
	}
	if v := m["memory"]; v != nil {
		e.Memory = d.size(v, join(key, "memory"))
	}
	if v := m["output"]; v != nil {
		if e.Output = d.size(v, join(key, "output")); e.Output > maxExecOutput {
			d.fail("value", join(key, "output"), v, "is more than is read of a program", "write at most 64MiB")
		}
	}
	if v := m["tie"]; v != nil {
		e.Tie = Tie(d.word(v, join(key, "tie"), string(TieVendorKey), string(TieMarker), string(TieUnique)))
	}
	if v := m["absence_is_proof"]; v != nil {
		e.AbsenceIsProof = d.boolean(v, join(key, "absence_is_proof"))
	}
	return e.orNil()
}

func (e *Exec) orNil() *Exec {
	if len(e.Command) == 0 {
		return nil
	}
	return e
}

// command reads a program and its arguments.
func (d *decoder) command(n *yaml.Node, key string) []string {
	items := d.elements(n, key)
	if n.Kind == yaml.SequenceNode && len(items) == 0 {
		d.fail("missing", key, n, "names no program", "write [/path/to/program, argument]")
	}
	var out []string
	for i, item := range items {
		if s, ok := d.text(item, index(key, i)); ok {
			out = append(out, s)
		}
	}
	return out
}
