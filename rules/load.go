package rules

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"keep-proxy/internal/strictyaml"
)

// Load reads every file and returns the set they make with the user's settings
// and defaults. All problems of all files are found at once; if any is an error
// the set is nil. No two files may hold the same connector or overlapping hosts.
func Load(files []File, settings []Settings, d Defaults) (*Set, Findings) {
	l := newLoading(settings, d.filled())
	for _, f := range files {
		if f.Bundled != "" {
			l.bundled[f.Bundled] = f
		}
	}
	for _, bundled := range []bool{false, true} { // What a file extends is known when the bundled ones are read.
		for _, f := range files {
			if _, extended := l.extended[f.Bundled]; (f.Bundled != "") == bundled && !f.Base && !extended {
				l.owner(f)
			}
		}
	}
	l.unusedSettings()
	l.collisions()
	sortFindings(l.findings)
	if l.findings.Failed() {
		return nil, l.findings
	}
	return newSet(l.owners), l.findings
}

// LoadPinned loads one stored version of a connector again, by the content that a record is pinned to. Settings for
// other connectors are passed over. So are overrides for operations that this version doesn't have or that don't fit
// it.
func LoadPinned(content []byte, settings []Settings, d Defaults) (*Connector, Findings) {
	l := newLoading(settings, d.filled())
	l.pinned = true
	l.file(File{Name: "pinned", Data: content})
	sortFindings(l.findings)
	return l.only(), l.findings
}

// SetOf is a set of one connector that was loaded.
func SetOf(c *Connector) *Set { return newSet([]*owner{early(c)}) }

// early is the owner of a connector that is compiled.
func early(c *Connector) *owner {
	return &owner{Head: c.Head, connector: func() *Connector { return c }}
}

// loading is the state of one load.
type loading struct {
	defaults Defaults
	settings []Settings
	pinned   bool
	// bundled are the bundled files by name. Of those that others extend, extended says which do.
	bundled  map[string]File
	extended map[string]string
	// set are the values of parameters that hold whatever the settings say; nil for those of the settings.
	set      map[string]Given
	findings Findings
	owners   []*owner
}

func newLoading(settings []Settings, d Defaults) *loading {
	return &loading{defaults: d, settings: settings, bundled: map[string]File{}, extended: map[string]string{}}
}

// file reads one file.
func (l *loading) file(f File) {
	d := newDecoder(f.Name, l.pinned)
	defer func() { l.findings = append(l.findings, d.findings...) }()
	data, base := f.Data, File{}
	if l.pinned {
		data, l.set = d.unsettled(data)
		data, base.Data, _ = bytes.Cut(data, []byte(extendedMark))
	}
	root, ok := d.Document(data)
	switch {
	case !ok:
		return
	case !root.Given():
		d.Fail(strictyaml.CodeSyntax, root, "the file is empty", "begin it with apiVersion: "+APIVersion)
		return
	}
	if base, ok = l.extend(d, root, f, base); !ok {
		return
	}
	c := d.connector(root, l)
	if c == nil {
		return
	}
	if base.Bundled != "" && c.Name != base.Bundled {
		c.Was = append(c.Was, base.Bundled)
	}
	if base.Data != nil {
		data = slices.Concat(data, []byte(extendedMark), base.Data)
	}
	c.Content = slices.Concat(data, []byte(c.settled()))
	sum := sha256.Sum256(c.Content)
	c.Hash, c.File = hex.EncodeToString(sum[:]), f.Name
	c.with = func(set map[string]Given) (*Connector, Findings) {
		return l.again(f, set)
	}
	l.owners = append(l.owners, early(c))
}

// again loads a file by itself.
func (l *loading) again(f File, set map[string]Given) (*Connector, Findings) {
	other := newLoading(l.settings, l.defaults)
	other.bundled, other.set = l.bundled, set
	other.file(f)
	return other.only(), other.findings
}

// only is the one connector that was loaded; nil where a file has errors.
func (l *loading) only() *Connector {
	if l.findings.Failed() || len(l.owners) != 1 {
		return nil
	}
	return l.owners[0].connector()
}

// settingsFor are the user's settings of a connector; nil if there are none.
func (l *loading) settingsFor(name string) *Settings {
	for i := range l.settings {
		if l.settings[i].Connector == name {
			return &l.settings[i]
		}
	}
	return nil
}

// setting records a problem of the settings.
func (l *loading) setting(key, problem, fix string) {
	l.findings = append(l.findings, Finding{
		Severity: SeverityError, Code: "settings", Key: "connectors.settings." + key, Problem: problem, Fix: fix,
	})
}

// unusedSettings reports settings that apply to nothing.
func (l *loading) unusedSettings() {
	var names []string
	for _, p := range l.owners {
		names = append(names, p.Name)
	}
	seen := map[string]bool{}
	for _, s := range l.settings {
		if seen[s.Connector] {
			l.setting(s.Connector, "the connector has settings twice", "merge the two entries")
		}
		seen[s.Connector] = true
		if s.Optional || slices.Contains(names, s.Connector) {
			continue
		}
		l.setting(s.Connector, "no connector has this name", meant(s.Connector, "connectors", names))
	}
}

// meant says which name was meant by one that there isn't.
func meant(name, what string, names []string) string {
	if near := strictyaml.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "the " + what + " are " + listed(names)
}

// collisions reports connectors that claim the same name or host.
func (l *loading) collisions() {
	for i, c := range l.owners {
		for _, other := range l.owners[:i] {
			if c.Name == other.Name {
				l.collision(c, "repeated-connector", "the connector "+c.Name+" is already in "+other.File,
					"keep one of the two files; to use your copy of a bundled one, leave that one out of connectors.bundled, or let yours say extends: "+c.Name)
				continue
			}
			names := append([]string{c.Name}, c.Was...)
			if i := slices.IndexFunc(names, other.was); i >= 0 {
				l.collision(c, "was", fmt.Sprintf("both %s and %s (%s) are or were %s", c.Name, other.Name, other.File, names[i]),
					"a name belongs to one connector: keep it in one of the two files")
			}
			for _, h := range c.hosts {
				for _, g := range other.hosts {
					if h.overlaps(g) && c.sharesPath(&other.Head) {
						l.collision(c, "host-overlap", fmt.Sprintf("the host %s is also one of %s (%s)", h.source, other.Name, g.source),
							"a path of a host belongs to one connector: let your file say extends: with the name of the bundled one, "+
								"say paths: in both, move the operations into one file, or change settings.hosts")
					}
				}
			}
		}
	}
}

// collision records a problem between two files.
func (l *loading) collision(p *owner, code, problem, fix string) {
	l.findings = append(l.findings, Finding{
		Severity: SeverityError, Code: code, File: p.File, Line: p.hostsAt.Line, Column: p.hostsAt.Column, Key: "hosts", Problem: problem, Fix: fix,
	})
}

// newSet indexes the connectors.
func newSet(owners []*owner) *Set {
	s := &Set{owners: slices.Clone(owners), byName: map[string]*owner{}, exact: map[string][]*owner{}}
	slices.SortFunc(s.owners, func(a, b *owner) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range s.owners {
		s.byName[p.Name] = p
		for _, h := range p.hosts {
			if host, ok := h.exact(); ok && h.port == "" {
				s.exact[host] = append(s.exact[host], p)
			} else {
				s.patterns = append(s.patterns, hostOwner{h, p})
			}
		}
	}
	return s
}

// File is one connector file: the name that findings use, and its bytes.
type File struct {
	Name string
	Data []byte
	// Bundled is the name by which others may extend it; empty for a user's file. With Base it is only for that.
	Bundled string
	Base    bool
	// Late files without settings are compiled when their connector is first asked for.
	Late bool
}

// Settings are what a user says about one connector in config.yaml. Credentials
// are not among them, but for the name of their header field: rules never see any.
type Settings struct {
	// Connector names the connector; a name that isn't loaded is an error, unless the settings are optional.
	Connector string
	Optional  bool
	// Hosts replaces the file's list of hosts; empty keeps it.
	Hosts []string
	// CredentialHeader is the header field of the configured credential; empty for none.
	// What a script sends in it is a credential too.
	CredentialHeader string
	// Signs says that each mutation is signed anew before it is sent (SigV4). Only then is anything written into it.
	Signs bool
	// Parameters are by name; an unknown name is an error.
	Parameters map[string]Given
	// Overrides are by operation name; an unknown name is an error.
	Overrides map[string]Override
}

// Override replaces single numbers of one operation. A nil or empty field keeps what the rule says. Settle,
// Confirmations or Spacing may be weaker than the defaults only where the rule has bounds. Elsewhere that is reported
// and the default holds.
type Override struct {
	Settle        *time.Duration
	Confirmations *int
	Spacing       *time.Duration
	OnAbsent      OnAbsent
	Verify        Verify
	// MaxDispatches is at least 1.
	MaxDispatches *int
	BlockScope    string
	Timeout       *time.Duration
	MaxBody       *int64
}

// Defaults are the numbers of operations that say nothing themselves. A zero
// field takes the built-in default.
type Defaults struct {
	// Settle is how long after its dispatches ended a mutation can still turn
	// up; default 5 min.
	Settle time.Duration
	// Confirmations is how often absence must be seen; default 2.
	Confirmations int
	// Spacing is the least time between two confirmations; default 10 s.
	Spacing time.Duration
	// Verify is what happens before a replay of operations with a probe or program.
	Verify Verify
	// BlockScope is workflow, item or mutation; empty leaves it to the run.
	BlockScope string
	// MaxBody bounds a mutation's body in bytes; default 10 MiB.
	MaxBody int64
	// Total is the deadline of one dispatch; default 10 min.
	Total time.Duration
}

// Built-in defaults. Settle, confirmations and spacing are also the floor below
// which only a rule with bounds may go.
const (
	DefaultSettle        = 5 * time.Minute
	DefaultConfirmations = 2
	DefaultSpacing       = 10 * time.Second
	DefaultMaxDispatches = 2
	DefaultMaxBody       = 10 << 20
	DefaultTotal         = 10 * time.Minute
)

// filled returns d with every zero field set to its built-in default.
func (d Defaults) filled() Defaults {
	if d.Settle <= 0 {
		d.Settle = DefaultSettle
	}
	if d.Confirmations <= 0 {
		d.Confirmations = DefaultConfirmations
	}
	if d.Spacing <= 0 {
		d.Spacing = DefaultSpacing
	}
	if d.MaxBody <= 0 {
		d.MaxBody = DefaultMaxBody
	}
	if d.Total <= 0 {
		d.Total = DefaultTotal
	}
	return d
}

// Severity says whether a finding keeps a set from loading.
type Severity string

// Severities. An unknown one counts as an error.
const (
	// SeverityError keeps the whole set from loading.
	SeverityError Severity = "error"
	// SeverityWarning is advice: the set loads.
	SeverityWarning Severity = "warning"
)

// Finding is one problem of a connector file or of its settings.
type Finding struct {
	Severity Severity `json:"severity"`
	// Code is a stable word for the kind of problem, such as "unknown-key".
	Code string `json:"code"`
	// File is the name the file was loaded under; empty for settings, of which the
	// caller knows where they stand.
	File string `json:"file"`
	// Line and Column start at 1; 0 when the problem has no place.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Key is the path of the key inside the file, such as
	// "operations[0].payload.ignore".
	Key string `json:"key"`
	// Value is what was written there, shortened; empty for maps and lists.
	Value   string `json:"value,omitempty"`
	Problem string `json:"problem"`
	// Fix says what to write instead; never empty.
	Fix string `json:"fix"`
}

// String formats the finding on one line: place, severity, code, problem, fix.
func (f Finding) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
		}
		b.WriteString(": ")
	}
	fmt.Fprintf(&b, "%s [%s] ", f.Severity, f.Code)
	if f.Key != "" {
		b.WriteString(f.Key)
		if f.Value != "" && !strings.Contains(f.Problem, f.Value) {
			fmt.Fprintf(&b, " = %q", f.Value)
		}
		b.WriteString(": ")
	}
	b.WriteString(f.Problem)
	if f.Fix != "" {
		fmt.Fprintf(&b, "; %s", f.Fix)
	}
	return b.String()
}

// Findings are the problems of a load, in the order of files, lines and columns.
type Findings []Finding

// Failed reports whether any finding keeps the set from loading.
func (fs Findings) Failed() bool {
	return slices.ContainsFunc(fs, func(f Finding) bool { return f.Severity != SeverityWarning })
}

// Error lists every finding, one a line.
func (fs Findings) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// sortFindings orders findings by place, keeping the order found for equal ones.
func sortFindings(fs Findings) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
