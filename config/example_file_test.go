package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const exampleFile = "../config.example.yaml"

func TestTheExampleFileHoldsEveryKeyWithItsDefault(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	r := newReport()
	values := decodeFile(r, exampleFile, data)
	for _, p := range r.problems {
		t.Error(p)
	}
	defaults := Default()
	for _, e := range entries() {
		got, given := values[e.path]
		if !given {
			t.Errorf("%s is missing", e.path)
			continue
		}
		if want := e.in(&defaults).Interface(); !sameValue(got, want) {
			t.Errorf("%s is %v, the default is %v", e.path, got, want)
		}
	}
}

// sameValue treats an empty list and none as one.
func sameValue(a, b any) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if va.Kind() == reflect.Slice && va.Len() == 0 && vb.Len() == 0 {
		return va.Type() == vb.Type()
	}
	return reflect.DeepEqual(a, b)
}

func TestTheExampleFileLoadsToWhatNoFileGives(t *testing.T) {
	t.Parallel()
	with, err := Load(Options{File: exampleFile, Environ: home})
	if err != nil {
		t.Fatal(err)
	}
	without, err := Load(Options{Environ: home})
	if err != nil {
		t.Fatal(err)
	}
	with.places, without.places = nil, nil
	if !reflect.DeepEqual(with, without) {
		t.Errorf("with the example file:\n%+v\nwithout:\n%+v", with, without)
	}
}

// TestTheSettingsInTheExampleFileLoad takes the comment above
// connectors.settings at its word.
func TestTheSettingsInTheExampleFileLoad(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "at most one entry for each:\n")
	comment, _, found := strings.Cut(rest, "  settings: []")
	if !found {
		t.Fatal("the example file no longer shows connectors.settings")
	}
	text := "connectors:\n  settings:\n"
	for line := range strings.Lines(comment) {
		text += strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(line, "  ")), "#")
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
	}
	file := filepath.Join(t.TempDir(), "keep.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Load(Options{File: file, Environ: home})
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	s := got.Connectors.Settings
	if len(s) != 1 || s[0].Connector != "stripe" || s[0].Credentials.Header != "Authorization" || s[0].Overrides["refund.create"].OnAbsent != OnAbsentEscalate {
		t.Errorf("settings = %+v", s)
	}
}
