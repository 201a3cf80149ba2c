package rules

import (
	"strings"
	"testing"
)

func TestProgramsThatCanNotWorkAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ exec, problem string }{
		"no command":               {"{timeout: 5s}", "command is missing"},
		"an empty command":         {"[]", "names no program"},
		"an empty list":            {"{command: []}", "names no program"},
		"a command that is a line": {"{command: 'ask me'}", "must be a list"},
		"a line alone":             {"./ask.sh --x", "or a map with command; write [./ask.sh, --x]"},
		"nothing":                  {"", "must be a map"},
		"too long":                 {"{command: [a], timeout: 1h}", "may take"},
		"no time":                  {"{command: [a], timeout: 0s}", "above zero"},
		"too much":                 {"{command: [a], output: 1GiB}", "is read of a program"},
		"a tie by content":         {"{command: [a], tie: content}", "not one of its values"},
		"a tie that isn't sent":    {"{command: [a], tie: marker}", "needs a marker"},
		"an unknown key":           {"{command: [a], shell: true}", "unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := withOperation("reconcile: [{exec: " + c.exec + "}]")
			set, findings := Load([]File{{Name: "api.yaml", Data: []byte(file)}}, nil, Defaults{})
			if set != nil || !strings.Contains(findings.Error(), c.problem) {
				t.Errorf("loaded %v:\n%s\nwant %q", set != nil, findings.Error(), c.problem)
			}
		})
	}
}
