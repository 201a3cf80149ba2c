package config

import (
	"os"
	"reflect"
	"slices"
	"testing"
)

// TestEveryKeyOfTheFormatIsRead loads the whole format and expects every key as a
// value that equals its default.
func TestEveryKeyOfTheFormatIsRead(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/format.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := newReport()
	values := decodeFile(r, "format.yaml", data)
	for _, p := range r.problems {
		t.Errorf("refused: %s", p)
	}
	defaults := Default()
	for _, e := range entries() {
		if got, ok := values[e.path]; !ok || !sameValue(got, e.in(&defaults).Interface()) {
			t.Errorf("%s = %v (given: %t), want the default %v", e.path, got, ok, e.in(&defaults))
		}
	}
}

func TestALaterKeyIsRefusedByName(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, "ledger: {engine: postgres}\n")
	compareLines(t, problems(t, Options{File: file, Environ: home}), []string{
		`keep.yaml:1:18: ledger.engine = "postgres": not yet built: this version does not know what to do with postgres; use badger`,
	})
}

func TestEveryFieldOfConfigHasExactlyOneKey(t *testing.T) {
	t.Parallel()
	var c Config
	fill(reflect.ValueOf(&c).Elem())
	for _, e := range entries() {
		if e.in(&c).IsZero() {
			t.Errorf("%s reads a field that another key reads too", e.path)
		}
		e.in(&c).SetZero()
	}
	if !reflect.ValueOf(c).IsZero() {
		t.Errorf("fields without a key: %+v", c)
	}
}

// fill gives every field below v a value that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Secret]() {
			secret, _ := ParseSecret("x")
			v.Set(reflect.ValueOf(secret))
			return
		}
		for field, value := range v.Fields() {
			if field.IsExported() {
				fill(value)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	default:
		v.SetInt(1)
	}
}

func TestEnvironmentNamesAreDistinct(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for _, e := range entries() {
		name := EnvName(e.path)
		if other, twice := names[name]; twice {
			t.Errorf("%s and %s are both %s", e.path, other, name)
		}
		names[name] = e.path
		if slices.Contains(notConfiguration, name) && e.path != "admin.token_file" {
			t.Errorf("%s of %s has another meaning", name, e.path)
		}
	}
	if got, want := EnvName("proxy.egress.deny_private"), "KEEP_PROXY_EGRESS_DENY_PRIVATE"; got != want {
		t.Errorf("EnvName = %s, want %s", got, want)
	}
}
