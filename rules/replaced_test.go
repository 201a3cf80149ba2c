package rules

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatIdentityReadsIsNotReplaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines    []string
		severity Severity // "": nothing is said
		part     string
	}{
		"a marker on identity":             {[]string{"marker: {json: name}"}, SeverityError, "the marker goes to json.name, which identity.name reads"},
		"a marker above identity":          {[]string{"marker: {json: a}", "identity: {x: json.a.b}"}, SeverityError, "json.a, which identity.x reads"},
		"a marker on the subkey":           {[]string{"marker: {form: note}", "subkey: form.?note.orValue('')"}, SeverityError, "form['note'], which subkey reads"},
		"a marker on all values of a name": {[]string{"marker: {form: note}", "subkey: form_all.note[0]"}, SeverityError, "form['note'], which subkey reads"},
		"a marker beside identity":         {[]string{"marker: {json: meta.keep_id}", "identity: {x: json.meta.ref}"}, "", ""},
		"a marker in a map of identity":    {[]string{"marker: {json: meta.keep_id}", "identity: {x: json.meta}"}, "", ""},
		"a marker in what is digested":     {[]string{"marker: {json: keep_id}", "identity: {x: body_sha256}"}, "", ""},
		"a marker behind identity":         {[]string{"marker: {append: json.name, text: '{mutation.marker}'}"}, "", ""},
		"the script's own native key":      {[]string{"native_key: {header: Idempotency-Key, when_present: keep_first}", "subkey: header['idempotency-key']"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, findings := Load([]File{{Name: "f.yaml", Data: []byte(withOperation(c.lines...))}}, nil, Defaults{})
			i := slices.IndexFunc(findings, func(f Finding) bool { return f.Code == "replaced" })
			switch {
			case c.severity == "" && (i >= 0 || findings.Failed()):
				t.Errorf("findings %v", findings)
			case c.severity != "" && (i < 0 || findings[i].Severity != c.severity || findings[i].Line < 12 || !strings.Contains(findings[i].Problem, c.part)):
				t.Errorf("findings %v, want %s …%s…", findings, c.severity, c.part)
			}
		})
	}
}
