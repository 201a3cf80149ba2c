package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"keep-proxy/internal/strictyaml"
)

// Load reads every file and returns the set they make with the user's settings
// and defaults. All problems of all files are found at once; if any is an error
// the set is nil. No two files may hold the same connector or overlapping hosts.
func Load(files []File, settings []Settings, d Defaults) (*Set, Findings) {
	l := &loading{defaults: d.filled(), settings: settings, at: map[*Connector]Where{}}
	for _, f := range files {
		l.file(f)
	}
	l.unusedSettings()
	l.collisions()
	sortFindings(l.findings)
	if l.findings.Failed() {
		return nil, l.findings
	}
	return newSet(l.connectors), l.findings
}

// LoadPinned loads one stored version of a connector again, by the content that a
// record is pinned to. Settings for other connectors, and overrides for
// operations that this version doesn't have or that don't fit it, are passed over.
func LoadPinned(content []byte, settings []Settings, d Defaults) (*Connector, Findings) {
	l := &loading{defaults: d.filled(), settings: settings, pinned: true, at: map[*Connector]Where{}}
	l.file(File{Name: "pinned", Data: content})
	sortFindings(l.findings)
	if l.findings.Failed() || len(l.connectors) != 1 {
		return nil, l.findings
	}
	return l.connectors[0], l.findings
}

// SetOf is a set of one connector that was loaded.
func SetOf(c *Connector) *Set { return newSet([]*Connector{c}) }

// loading is the state of one load.
type loading struct {
	defaults   Defaults
	settings   []Settings
	pinned     bool
	findings   Findings
	connectors []*Connector
	// at is where each connector's hosts stand.
	at map[*Connector]Where
}

// file reads one file.
func (l *loading) file(f File) {
	d := newDecoder(f.Name, l.pinned)
	defer func() { l.findings = append(l.findings, d.findings...) }()
	root, ok := d.Document(f.Data)
	switch {
	case !ok:
		return
	case !root.Given():
		d.Fail(strictyaml.CodeSyntax, root, "the file is empty", "begin it with apiVersion: "+APIVersion)
		return
	}
	c := d.connector(root, l)
	if c == nil {
		return
	}
	sum := sha256.Sum256(f.Data)
	c.Hash, c.Content, c.File = hex.EncodeToString(sum[:]), slices.Clone(f.Data), f.Name
	l.connectors = append(l.connectors, c)
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
	for _, c := range l.connectors {
		names = append(names, c.Name)
	}
	seen := map[string]bool{}
	for _, s := range l.settings {
		if seen[s.Connector] {
			l.setting(s.Connector, "the connector has settings twice", "merge the two entries")
		}
		seen[s.Connector] = true
		if slices.Contains(names, s.Connector) {
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
	for i, c := range l.connectors {
		for _, other := range l.connectors[:i] {
			if c.Name == other.Name {
				l.collision(c, "repeated-connector", "the connector "+c.Name+" is already in "+other.File, "keep one of the two files, or rename one")
				continue
			}
			for _, h := range c.hosts {
				for _, g := range other.hosts {
					if h.overlaps(g) {
						l.collision(c, "host-overlap", fmt.Sprintf("the host %s is also one of %s (%s)", h.source, other.Name, g.source),
							"a host belongs to one connector: move the operations into one file, or change settings.hosts")
					}
				}
			}
		}
	}
}

// collision records a problem between two files.
func (l *loading) collision(c *Connector, code, problem, fix string) {
	at := l.at[c]
	l.findings = append(l.findings, Finding{
		Severity: SeverityError, Code: code, File: c.File, Line: at.Line, Column: at.Column, Key: "hosts", Problem: problem, Fix: fix,
	})
}

// newSet indexes the connectors.
func newSet(connectors []*Connector) *Set {
	s := &Set{connectors: slices.Clone(connectors), byName: map[string]*Connector{}, exact: map[string]*Connector{}}
	slices.SortFunc(s.connectors, func(a, b *Connector) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range s.connectors {
		s.byName[c.Name] = c
		for _, h := range c.hosts {
			if host, ok := h.exact(); ok && h.port == "" {
				s.exact[host] = c
			} else {
				s.patterns = append(s.patterns, hostOwner{h, c})
			}
		}
	}
	return s
}
