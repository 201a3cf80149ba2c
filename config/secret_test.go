package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v4"
)

func mustSecret(t *testing.T, s string) Secret {
	t.Helper()
	secret, err := ParseSecret(s)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// sources knows one variable and two files.
func sources() Sources {
	return Sources{
		LookupEnv: func(name string) (string, bool) {
			switch name {
			case "TOKEN":
				return "t0k", true
			case "EMPTY":
				return "", true
			default:
				return "", false
			}
		},
		ReadFile: func(path string) ([]byte, error) {
			switch path {
			case "/unix":
				return []byte("f1le\n"), nil
			case "/dos":
				return []byte("f1le\r\n"), nil
			case "/lines":
				return []byte("one\ntwo\n"), nil
			case "/blank":
				return []byte("\n"), nil
			default:
				return nil, errors.New("no such file")
			}
		},
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, template, want, err string
	}{
		{"a literal", "plain", "plain", ""},
		{"a variable", "${env:TOKEN}", "t0k", ""},
		{"a file, without its line ending", "Bearer ${file:/unix}", "Bearer f1le", ""},
		{"a file with another line ending", "${file:/dos}", "f1le", ""},
		{"several", "${env:TOKEN}:${file:/unix}!", "t0k:f1le!", ""},
		{"a dollar alone is a literal", "a$b}c", "a$b}c", ""},
		{"an unset variable", "${env:NONE}", "", "${env:NONE}: the variable is unset or empty"},
		{"an empty variable", "${env:EMPTY}", "", "${env:EMPTY}: the variable is unset or empty"},
		{"a missing file", "${file:/none}", "", "${file:/none}: no such file"},
		{"an empty file", "${file:/blank}", "", "${file:/blank}: the file is empty"},
		{"a file of several lines", "${file:/lines}", "", "the resolved value holds a line break or NUL, which no header field can carry"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := mustSecret(t, c.template).Resolve(sources())
			if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("got %q and error %v, want %q and %q", got, err, c.want, c.err)
			}
		})
	}
}

func TestTheZeroSecretResolvesToAnError(t *testing.T) {
	t.Parallel()
	var zero Secret
	if got, err := zero.Resolve(sources()); got != "" || err == nil || err.Error() != "no value is configured" {
		t.Errorf("got %q and error %v", got, err)
	}
	if !zero.IsZero() || zero.EnvNames() != nil || zero.files() != nil {
		t.Error("the zero secret names something")
	}
}

func TestParseSecretRefusals(t *testing.T) {
	t.Parallel()
	const reference = "a reference is ${env:NAME} or ${file:PATH}"
	for _, c := range []struct{ name, template, want string }{
		{"nothing", "", "empty"},
		{"a reference that is not closed", "sk_live ${env:A", "a ${ has no closing }"},
		{"a reference without a kind", "${TOKEN}", reference},
		{"a reference without a name", "${env:}", reference},
		{"an unknown kind", "${vault:a}", reference},
		{"a name that is no variable's", "${env:A B}", "the name in ${env:NAME} is not a variable's name"},
		{"a name that begins with a digit", "${env:1A}", "the name in ${env:NAME} is not a variable's name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseSecret(c.template)
			if err == nil || err.Error() != c.want || !got.IsZero() {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestASecretNamesItsVariables(t *testing.T) {
	t.Parallel()
	secret := mustSecret(t, "a${env:A}${file:/f}${env:B_2}")
	if got, want := secret.EnvNames(), []string{"A", "B_2"}; !slices.Equal(got, want) {
		t.Errorf("variables %q, want %q", got, want)
	}
}

func TestASecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	secret := mustSecret(t, "sk_live_1${env:TOKEN}")
	type hidden struct{ s Secret }
	type holder struct {
		Value   Secret
		Pointer *Secret
	}
	held := holder{secret, &secret}
	printed := map[string]string{
		"String": secret.String(),
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		printed[verb] = fmt.Sprintf(verb, secret)
		printed[verb+" in a struct"] = fmt.Sprintf(verb, held)
		printed[verb+" behind a pointer"] = fmt.Sprintf(verb, &held)
		printed[verb+" in an unexported field"] = fmt.Sprintf(verb, hidden{secret})
		printed[verb+" in a configuration"] = fmt.Sprintf(verb, []ConnectorSettings{{Credentials: &Credentials{Value: secret}}})
	}
	marshal := func(name string, f func(any) ([]byte, error)) {
		out, err := f(held)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := strings.Count(string(out), "<secret>") + strings.Count(string(out), `\u003csecret\u003e`); n != 2 {
			t.Errorf("%s shows %d secrets as <secret>, want 2: %s", name, n, out)
		}
		printed[name] = string(out)
	}
	marshal("encoding/json", json.Marshal)
	marshal("json/v2", func(v any) ([]byte, error) { return jsonv2.Marshal(v) })
	marshal("yaml", func(v any) ([]byte, error) { return yaml.Dump(v) })
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", secret, "held", held)
	printed["slog"] = log.String()
	text, err := secret.MarshalText()
	if err != nil {
		t.Error(err)
	}
	printed["text"] = string(text)
	for how, out := range printed {
		if strings.Contains(out, "sk_live") || strings.Contains(out, "TOKEN") {
			t.Errorf("%s shows the secret: %s", how, out)
		}
	}
	for _, how := range []string{"String", "%v", "%+v", "%#v", "%s", "%x", "text"} {
		if printed[how] != Redacted {
			t.Errorf("%s prints %q, want %q", how, printed[how], Redacted)
		}
	}
}
