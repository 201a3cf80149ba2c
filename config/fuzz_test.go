package config

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// FuzzLoad holds what every input must give: a Config that passes its own
// checks, or an Error whose every problem says what is wrong and how to mend
// it, and none of which shows a credential.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{exampleFile, "testdata/format.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(fullSettings))
	f.Add([]byte("connectors: {settings: [{connector: a, credentials: {header: A, value: sk_live}}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newReport()
		c, err := merged(r, Options{Environ: home}, decodeFile(r, "/etc/keep.yaml", data))
		if err == nil {
			again := newReport()
			check(again, &c)
			if len(again.problems) > 0 {
				t.Fatalf("loaded, but %v", again.problems)
			}
			return
		}
		var all *Error
		if !errors.As(err, &all) {
			t.Fatalf("a %T: %v", err, err)
		}
		for _, p := range all.Problems {
			if p.Text == "" || p.Fix == "" || p.Source == "" {
				t.Errorf("incomplete problem %+v", p)
			}
			if isSecretKey(p.Key) && p.Value != "" && p.Value != Redacted {
				t.Errorf("a credential is shown: %+v", p)
			}
		}
	})
}

// FuzzSecret holds that a template that is accepted keeps every byte outside
// its references, and that no error quotes the text.
func FuzzSecret(f *testing.F) {
	f.Add("Bearer ${file:/run/secrets/a}")
	f.Add("${env:A}${env:B}")
	f.Add("a$${env:}")
	f.Fuzz(func(t *testing.T, text string) {
		secret, err := ParseSecret(text)
		if err != nil {
			if len(text) > 20 && strings.Contains(err.Error(), text) {
				t.Errorf("the error quotes the text: %v", err)
			}
			return
		}
		var b strings.Builder
		for _, part := range secret.list() {
			switch part.kind {
			case partEnv:
				b.WriteString("${env:" + part.text + "}")
			case partFile:
				b.WriteString("${file:" + part.text + "}")
			default:
				b.WriteString(part.text)
			}
		}
		if b.String() != text {
			t.Errorf("%q became %q", text, b.String())
		}
	})
}
