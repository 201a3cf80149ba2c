// Package connectors holds the connector files that come with the program. They
// are data: package rules loads and checks them, docs/connectors.md describes the
// format.
//
// # Failure
//
// Nothing is checked here. A bundled file that doesn't load is a finding of rules, under the name bundled:NAME.yaml.
// Like any other it keeps the program from starting. Tests load all of them, and run their cases, before they are
// released.
package connectors

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// files are the bundled connector files, one per connector, NAME.yaml, and the fakes that they are tried against.
//
//go:embed *.yaml fakes/*.yaml
var files embed.FS

// Schema is the JSON Schema of connector files, generated from what the loader takes (package rules).
//
//go:embed connector.schema.json
var Schema []byte

// File is one bundled connector file.
type File struct {
	// Name is the connector's name, which is the file's without .yaml.
	Name string
	Data []byte
}

// Files are all bundled connector files, ordered by name.
func Files() ([]File, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("bundled connectors: %w", err)
	}
	out := make([]File, 0, len(entries))
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		data, err := fs.ReadFile(files, entry.Name())
		if err != nil {
			return nil, fmt.Errorf("bundled connectors: %w", err)
		}
		out = append(out, File{Name: strings.TrimSuffix(entry.Name(), path.Ext(entry.Name())), Data: data})
	}
	return out, nil
}

// Fake is the file of the fake of this name, which docs/fakes.md describes.
func Fake(name string) ([]byte, error) {
	data, err := files.ReadFile("fakes/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("there is no fake %q", name)
	}
	return data, nil
}

// Fakes are the names of the fakes.
func Fakes() []string {
	found, _ := fs.Glob(files, "fakes/*.yaml") // The pattern is sound.
	for i, name := range found {
		found[i] = strings.TrimSuffix(path.Base(name), path.Ext(name))
	}
	return found
}
