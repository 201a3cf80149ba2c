package config

import (
	"reflect"
	"testing"
)

func TestProblemsOfAFile(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, yaml string
		want       []string
	}{
		{"an empty file is no problem", "", nil},
		{"comments alone are no problem", "# nothing\n", nil},
		{"null alone is no problem", "~\n", nil},
		{"a section whose keys are commented out is no problem", "proxy:\n  # hold: 1s\nlog: {level: debug}\n", nil},

		{"YAML that does not parse", "proxy: [a\n", []string{
			"keep.yaml:2:1: not YAML: did not find expected ',' or ']'; check the indentation; quote values that hold any of : # { [ * &, or give them a line of their own",
		}},
		{"a tab as indentation", "proxy:\n\thold: 1s\n", []string{
			"keep.yaml:2:1: not YAML: found character that cannot start any token; indent with spaces: this line begins with a tab",
		}},
		{"a NUL byte", "log: {level: \x00}\n", []string{
			"keep.yaml:1:14: not YAML: a control character (U+0000); save the file as UTF-8, and write control characters as \\u escapes in double quotes",
		}},
		{"bytes of another encoding", "proxy:\n  hold: 1s\nlog: {level: \"\u00e9\xe9\"}\n", []string{
			"keep.yaml:3:16: not YAML: byte 0xe9 is no UTF-8; save the file as UTF-8, and write control characters as \\u escapes in double quotes",
		}},
		{"a second document", "log: {level: debug}\n---\nlog: {level: warn}\n", []string{
			"keep.yaml:2:1: the file holds more than one YAML document; keep one document, without ---",
		}},
		{"a second document that does not parse", "log: {level: debug}\n---\n[\n", []string{
			"keep.yaml:4:1: not YAML: did not find expected node content; check the indentation; quote values that hold any of : # { [ * &, or give them a line of their own",
		}},
		{"a list at the top", "- proxy\n", []string{
			"keep.yaml:1:1: the file must be a map; write key: value lines below it",
		}},
		{"text at the top", "proxy\n", []string{
			"keep.yaml:1:1: the file must be a map; write key: value lines below it",
		}},

		{"an unknown key near a known one", "proxy: {lisen: []}\n", []string{
			"keep.yaml:1:9: proxy.lisen: unknown key; did you mean listen?",
		}},
		{"a key with two letters swapped", "log: {levle: debug}\n", []string{
			"keep.yaml:1:7: log.levle: unknown key; did you mean level?",
		}},
		{"a key of another section", "max_body: 1MiB\n", []string{
			"keep.yaml:1:1: max_body: unknown key; did you mean proxy.max_body?",
		}},
		{"a key like nothing", "log: {colour: red}\n", []string{
			"keep.yaml:1:7: log.colour: unknown key; the keys of log are format, level",
		}},
		{"a key in capitals is another key", "Log: {level: debug}\n", []string{
			"keep.yaml:1:1: Log: unknown key; did you mean log?",
		}},
		{"a dotted key is no path", "log.level: debug\n", []string{
			"keep.yaml:1:1: log.level: unknown key; the keys of the configuration are admin, connectors, isolate, ledger, log, notify, proxy, reconcile, runs, verify_on_replay",
		}},
		{"a key given twice", "log:\n  level: debug\n  level: warn\n", []string{
			"keep.yaml:3:3: log.level: is already on line 2; keep one of them",
		}},
		{"a section given twice", "log: {level: debug}\nlog: {format: json}\n", []string{
			"keep.yaml:2:1: log: is already on line 1; keep one of them",
		}},
		{"a key that is a list", "? [log]\n: x\n", []string{
			"keep.yaml:1:3: a key must be a plain word; write the key out; anchors, aliases, tags and << are not taken",
		}},
		{"a key that is a number", "1: x\n", []string{
			"keep.yaml:1:1: 1: unknown key; the keys of the configuration are admin, connectors, isolate, ledger, log, notify, proxy, reconcile, runs, verify_on_replay",
		}},
		{"a merge key", "log: {<<: {level: debug}}\n", []string{
			"keep.yaml:1:7: log: a key must be a plain word; write the key out; anchors, aliases, tags and << are not taken",
		}},

		{"an anchor", "log: &l {level: debug}\n", []string{
			"keep.yaml:1:6: log: anchors and aliases are not taken; write the value out",
		}},
		{"an alias", "log: {level: &d debug, format: *d}\n", []string{
			`keep.yaml:1:14: log.level = "debug": anchors and aliases are not taken; write the value out`,
			"keep.yaml:1:32: log.format: anchors and aliases are not taken; write the value out",
		}},
		{"a tag", "log: {level: !!str debug}\n", []string{
			`keep.yaml:1:14: log.level = "debug": tags are not taken; leave the !!str out`,
		}},
		{"a tag on a section", "log: !mine {level: debug}\n", []string{
			"keep.yaml:1:6: log: tags are not taken; leave the !mine out",
		}},

		{"a map where a value is expected", "log: {level: {is: debug}}\n", []string{
			`keep.yaml:1:14: log.level: must be one value; write one value on the line; quote it if it holds [ or { or ": "`,
		}},
		{"a list where a value is expected", "log: {level: [debug]}\n", []string{
			`keep.yaml:1:14: log.level: must be one value; write one value on the line; quote it if it holds [ or { or ": "`,
		}},
		{"no value", "log: {level: }\n", []string{
			"keep.yaml:1:14: log.level: must be one value, and there is none; write it, or leave the key out",
		}},
		{"a value where a list is expected", "proxy: {listen: 127.0.0.1:8080}\n", []string{
			`keep.yaml:1:17: proxy.listen = "127.0.0.1:8080": must be a list; write it in brackets, [] for none, or as lines that begin with "- "`,
		}},
		{"a value where a section is expected", "log: debug\n", []string{
			`keep.yaml:1:6: log = "debug": must be a map; write key: value lines below it`,
		}},
		{"a number where text is expected", "ledger: {id: 42}\n", []string{
			`keep.yaml:1:14: ledger.id = "42": a number or boolean where text is expected; put it in quotes`,
		}},
		{"a boolean in a list of texts", "proxy: {passthrough: [a.example, true]}\n", []string{
			`keep.yaml:1:34: proxy.passthrough[1] = "true": a number or boolean where text is expected; put it in quotes`,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			compareLines(t, problems(t, Options{File: writeConfig(t, c.yaml), Environ: home}), c.want)
		})
	}
}

func TestAProblemPointsAtItsPlace(t *testing.T) {
	t.Parallel()
	r := newReport()
	decodeFile(r, "keep.yaml", []byte("proxy:\n  listen:\n    - 127.0.0.1:8080\n    - 127.0.0.1:99999\n"))
	want := []Problem{{
		Source: "keep.yaml", Line: 4, Column: 7,
		Key: "proxy.listen[1]", Value: "127.0.0.1:99999",
		Text: "the port is not a number from 0 to 65535",
		Fix:  "write host:port, such as 127.0.0.1:8080; port 0 takes a free one",
	}}
	if !reflect.DeepEqual(r.problems, want) {
		t.Errorf("problems %+v\nwant     %+v", r.problems, want)
	}
}
