package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds a configuration file. Nobody writes one by hand that is
// larger, and a wrong path to something huge should not be read to its end.
const maxFile = 1 << 20

// readFile gives the content of the configuration file, or reports why it
// can't be read.
func readFile(r *report, path string) ([]byte, bool) {
	data, err := readBounded(path)
	if err == nil {
		return data, true
	}
	f := &fault{err.Error(), "name a file that can be read with --config"}
	if errors.Is(err, fs.ErrNotExist) {
		f = &fault{"there is no such file", "name another with --config, or leave it out to run on defaults"}
	}
	r.add("", origin{source: path}, f)
	return nil, false
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("larger than %s", Size(maxFile))
	}
	return data, nil
}

// decodeFile reads a configuration file strictly and returns the values it
// gives, by key. What can't be read is reported and left out.
func decodeFile(r *report, name string, data []byte) map[string]any {
	base, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		r.add("", origin{source: name}, &fault{err.Error(), "start in a folder that exists"})
		return nil
	}
	d := &decoder{report: r, source: name, in: reading{base: base}}
	root, ok := d.document(data)
	if !ok {
		return nil
	}
	values := map[string]any{}
	d.section(entries(), "", root, values)
	return values
}

// document parses exactly one YAML document. An empty one is no map to read.
func (d *decoder) document(data []byte) (*yaml.Node, bool) {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		d.syntax(err, data)
		return nil, false
	}
	var doc, more yaml.Node
	if err := loader.Load(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			d.syntax(err, data)
		}
		return nil, false
	}
	if err := loader.Load(&more); !errors.Is(err, io.EOF) {
		if err != nil {
			d.syntax(err, data)
			return nil, false
		}
		at := origin{source: d.source, line: more.Line, column: more.Column}
		d.report.add("", at, &fault{"a second YAML document", "keep one document, without ---"})
	}
	if len(doc.Content) != 1 || doc.Content[0].Tag == nullTag {
		return nil, false
	}
	return doc.Content[0], true
}

// syntax reports what the YAML parser could not read.
func (d *decoder) syntax(err error, data []byte) {
	at, text := origin{source: d.source}, "not YAML"
	fix := "check the indentation (spaces, no tabs) and quote values that hold any of : # { [ * &"
	load, ok := errors.AsType[*yaml.LoadError](err)
	if ok {
		at.line, at.column = load.Mark.Line, load.Mark.Column
		text += ": " + load.Message
	}
	if line, column, what := unreadable(data); ok && at.line == 0 && line > 0 {
		at.line, at.column = line, column
		text, fix = "not YAML: "+what, "save the file as UTF-8, and write control characters as \\u escapes in double quotes"
	}
	d.report.add("", at, &fault{text, fix})
}

// unreadable finds the first byte or character that no YAML text may hold, which the
// parser refuses without a place. The line is 0 when there is none.
func unreadable(data []byte) (line, column int, what string) {
	line, column = 1, 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1:
			return line, column, fmt.Sprintf("byte 0x%02x is no UTF-8", data[0])
		case r == '\n':
			line, column = line+1, 0
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return line, column, fmt.Sprintf("a control character (U+%04X)", r)
		}
		data, column = data[size:], column+1
	}
	return 0, 0, ""
}

// section reads the map of one section into values. A section without a value
// is an empty one, so that its keys may all be commented out.
func (d *decoder) section(all []entry, key string, n *yaml.Node, values map[string]any) {
	if n.Tag == nullTag && nodeFault(n) == nil {
		d.note(key, n)
		return
	}
	fields := map[string]field{}
	for name, deeper := range children(all, key) {
		if deeper {
			fields[name] = func(full string, v *yaml.Node) { d.section(all, full, v, values) }
		}
	}
	for _, e := range all {
		if name, ok := childOf(e.path, key); ok {
			fields[name] = func(full string, v *yaml.Node) {
				if value, ok := e.node(d, full, v); ok {
					values[e.path] = value
				}
			}
		}
	}
	d.object(key, n, fields, nil, func(name string) string { return elsewhere(all, name) })
}

// childOf returns the last name of path if the rest of it is section.
func childOf(path, section string) (string, bool) {
	cut := strings.LastIndexByte(path, '.')
	if path[:max(cut, 0)] != section {
		return "", false
	}
	return path[cut+1:], true
}

// elsewhere finds the key of another section that has this name.
func elsewhere(all []entry, name string) string {
	for _, e := range all {
		if strings.HasSuffix(e.path, "."+name) {
			return e.path
		}
	}
	return ""
}
