package config

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v4"
)

// manifests are the files of examples/ that hold a configuration of keep-proxy's, and
// where in them.
var manifests = []struct {
	file string
	at   []string
}{
	{"kubernetes/job.yaml", []string{"data", "config.yaml"}},
	{"compose/compose.yaml", []string{"configs", "keep-proxy", "content"}},
}

func TestTheExamplesConfigurationsLoad(t *testing.T) {
	t.Parallel()
	for _, m := range manifests {
		found := false
		for _, document := range documents(t, m.file) {
			text, ok := member(document, m.at...).(string)
			if !ok {
				continue
			}
			found = true
			r := newReport()
			decodeFile(r, m.file, []byte(text))
			for _, p := range r.problems {
				t.Error(p)
			}
		}
		if !found {
			t.Errorf("%s holds no %s", m.file, strings.Join(m.at, "."))
		}
	}
}

func TestTheExamplesNameVolumesThatExist(t *testing.T) {
	t.Parallel()
	compose := documents(t, "compose/compose.yaml")[0]
	volumes := keysOf(member(compose, "volumes"))
	for service, s := range member(compose, "services").(map[string]any) {
		for _, v := range member(s, "volumes").([]any) {
			if name, _, _ := strings.Cut(v.(string), ":"); !slices.Contains(volumes, name) {
				t.Errorf("compose: %s mounts %s of %v", service, name, volumes)
			}
		}
	}
	for _, document := range documents(t, "kubernetes/job.yaml") {
		pod, ok := member(document, "spec", "template", "spec").(map[string]any)
		if !ok {
			continue
		}
		var volumes []string
		for _, v := range pod["volumes"].([]any) {
			volumes = append(volumes, member(v, "name").(string))
		}
		for _, c := range slices.Concat(pod["initContainers"].([]any), pod["containers"].([]any)) {
			for _, mount := range member(c, "volumeMounts").([]any) {
				if name := member(mount, "name").(string); !slices.Contains(volumes, name) {
					t.Errorf("job: %v mounts %s of %v", member(c, "name"), name, volumes)
				}
			}
		}
	}
}

func TestEveryManifestOfTheExamplesIsYAML(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if len(documents(t, strings.TrimPrefix(file, "../examples/"))) == 0 {
			t.Errorf("%s is empty", file)
		}
	}
}

func documents(t *testing.T, name string) (all []any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, v)
	}
}

func member(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func keysOf(v any) (all []string) {
	for name := range v.(map[string]any) {
		all = append(all, name)
	}
	return all
}
