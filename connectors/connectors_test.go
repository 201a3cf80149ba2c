package connectors_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"keep-proxy/connectors"
)

func TestFilesAreTheFolder(t *testing.T) {
	t.Parallel()
	files, err := connectors.Files()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Name)
		want, err := os.ReadFile(f.Name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if string(f.Data) != string(want) {
			t.Errorf("%s is embedded with other content", f.Name)
		}
		if !strings.HasPrefix(string(want), "# yaml-language-server: $schema=connector.schema.json\n") {
			t.Errorf("%s.yaml doesn't name its schema for editors", f.Name)
		}
		if !strings.Contains(string(want), "\nconnector: "+f.Name+"\n") {
			t.Errorf("%s.yaml holds a connector of another name", f.Name)
		}
	}
	names, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ".yaml")
	}
	if !slices.Equal(got, names) {
		t.Errorf("Files() = %v, the folder holds %v", got, names)
	}
}
