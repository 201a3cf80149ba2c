package rules

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// withRead is a file with one operation that reads, with keys added or replaced.
func withRead(lines ...string) string {
	return withOperation(append([]string{"effect: read", "match: {method: GET, path: /live}", "identity: -", "reconcile: -", "manual_check: -"}, lines...)...)
}

func TestProblemsOfAnUpgradeAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, code, key, part string }{
		"of a mutation":                      {withOperation("upgrade: [websocket]"), "no-effect", "operations[0].upgrade", "neither judged nor recorded"},
		"of what is denied":                  {withRead("effect: deny", "upgrade: [websocket]"), "no-effect", "operations[0].upgrade", "neither judged nor recorded"},
		"another method":                     {withRead("match: {method: POST, path: /live}", "upgrade: [websocket]"), "value", "operations[0].upgrade", "GET alone"},
		"another method besides":             {withRead("match: {method: [GET, HEAD], path: /live}", "upgrade: [websocket]"), "value", "operations[0].upgrade", "GET alone"},
		"any method":                         {withRead("match: {path: /live}", "upgrade: [websocket]"), "value", "operations[0].upgrade", "GET alone"},
		"any method in one match":            {withRead("match: [{method: GET, path: /live}, {path: /b}]", "upgrade: [websocket]"), "value", "operations[0].upgrade", "GET alone"},
		"no protocol":                        {withRead("upgrade: []"), "empty", "operations[0].upgrade", "names no protocol"},
		"an empty name":                      {withRead("upgrade: ['']"), "empty", "operations[0].upgrade[0]", "is empty"},
		"a yes":                              {withRead("upgrade: true"), "value", "operations[0].upgrade", "is no protocol"},
		"a map":                              {withRead("upgrade: {websocket: true}"), "type", "operations[0].upgrade", "must be one value"},
		"a number":                           {withRead("upgrade: [13]"), "value", "operations[0].upgrade[0]", "is no protocol"},
		"no token":                           {withRead("upgrade: [websocket, 'web socket']"), "value", "operations[0].upgrade[1]", "is no protocol"},
		"a list in a text":                   {withRead("upgrade: 'websocket, chat'"), "value", "operations[0].upgrade", "is no protocol"},
		"an empty version":                   {withRead("upgrade: [chat/]"), "value", "operations[0].upgrade[0]", "is no protocol"},
		"two versions":                       {withRead("upgrade: [chat/1/2]"), "value", "operations[0].upgrade[0]", "is no protocol"},
		"every protocol":                     {withRead("upgrade: ['*']"), "value", "operations[0].upgrade[0]", "every protocol"},
		"HTTP/2 in clear":                    {withRead("upgrade: [h2c]"), "value", "operations[0].upgrade[0]", "pass unseen"},
		"HTTP, with a version":               {withRead("upgrade: [HTTP/2.0]"), "value", "operations[0].upgrade[0]", "pass unseen"},
		"TLS":                                {withRead("upgrade: [TLS/1.0]"), "value", "operations[0].upgrade[0]", "pass unseen"},
		"one twice, in letters of each case": {withRead("upgrade: [websocket, WebSocket]"), "value", "operations[0].upgrade[1]", "there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, findings := Load([]File{{Name: "f.yaml", Data: []byte(c.file)}}, nil, Defaults{})
			if set != nil || len(findings) != 1 {
				t.Fatalf("loads: %t, with %v\n%s", set != nil, findings, c.file)
			}
			if f := findings[0]; f.Code != c.code || f.Key != c.key || !strings.Contains(f.Problem, c.part) || f.Fix == "" || f.Line == 0 {
				t.Errorf("found %+v", f)
			}
		})
	}
}

func TestWhichUpgradesAMatchAllows(t *testing.T) {
	t.Parallel()
	set, findings := Load([]File{{Name: "f.yaml", Data: []byte(withOperation("name: make") +
		"  - {name: live, match: {method: GET, path: /live}, effect: read, upgrade: [websocket, Chat/2]}\n" +
		"  - {name: beacon, match: {method: GET, path: /beacon}, effect: ignore, upgrade: websocket}\n" +
		"  - {name: page, match: {method: GET, path: /page}, effect: read}\n")}}, nil, Defaults{})
	if set == nil {
		t.Fatal(findings)
	}
	both := http.Header{"Connection": {"keep-alive", "x, UPGRADE"}, "Sec-Websocket-Key": {"x"}}
	offer := func(r *Raw) { delete(r.Header, "Sec-Websocket-Key") }
	for name, c := range map[string]struct {
		method, url string
		upgrade     []string
		change      func(*Raw)
		want        string
	}{
		"none is asked for":                    {"GET", "https://api.test/live", nil, nil, "[] <nil>"},
		"the one that is named":                {"GET", "https://api.test/live", []string{"WebSocket"}, nil, "[WebSocket] <nil>"},
		"those that are named, in their order": {"GET", "https://api.test/live", []string{"chat/2, h2c", "websocket"}, nil, "[chat/2 websocket] <nil>"},
		"what is ignored":                      {"GET", "https://api.test/beacon", []string{"websocket"}, nil, "[websocket] <nil>"},
		"another version":                      {"GET", "https://api.test/live", []string{"chat, chat/3"}, nil, "live of test names websocket, Chat/2"},
		"a version of one without":             {"GET", "https://api.test/live", []string{"websocket/13"}, nil, "live of test names"},
		"a rule that names none":               {"GET", "https://api.test/page", []string{"websocket"}, nil, "no rule names the protocol"},
		"reads of no rule":                     {"GET", "https://api.test/other", []string{"websocket"}, nil, "no rule names the protocol"},
		"a host of no connector":               {"GET", "https://other.test/live", []string{"websocket"}, nil, "no rule names the protocol"},
		"another method":                       {"POST", "https://api.test/things", []string{"websocket"}, nil, "this one is POST"},
		"a body":                               {"GET", "https://api.test/live", []string{"websocket"}, func(r *Raw) { r.HasBody = true }, "has content"},
		"a body at hand":                       {"GET", "https://api.test/live", []string{"websocket"}, func(r *Raw) { r.Body = []byte("x") }, "has content"},
		"no Connection":                        {"GET", "https://api.test/live", []string{"websocket"}, func(r *Raw) { delete(r.Header, "Connection") }, "Connection: Upgrade"},
		"no list":                              {"GET", "https://api.test/live", []string{"websocket, (chat)"}, nil, "no list of protocols"},
		"an empty one":                         {"GET", "https://api.test/live", []string{" , "}, nil, "no list of protocols"},
		"an offer with a body":                 {"GET", "https://api.test/live", []string{"websocket"}, func(r *Raw) { offer(r); r.HasBody = true }, "[] <nil>"},
		"an offer in a mutation":               {"POST", "https://api.test/things", []string{"websocket"}, offer, "[] <nil>"},
		"an offer that the rule names":         {"GET", "https://api.test/live", []string{"chat/2"}, offer, "[chat/2] <nil>"},
		"a method that is overridden":          {"GET", "https://api.test/live?_method=DELETE", []string{"websocket"}, nil, "overrides its method"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme, rest, _ := strings.Cut(c.url, "://")
			host, path, _ := strings.Cut(rest, "/")
			raw := Raw{Method: c.method, Scheme: scheme, Authority: host, Target: "/" + path, Header: both.Clone()}
			if c.upgrade != nil {
				raw.Header["Upgrade"] = c.upgrade
			}
			if c.change != nil {
				c.change(&raw)
			}
			asked, refusal := raw.Upgrade()
			if refusal == nil && len(asked) > 0 {
				req, f := Normalise(raw)
				if f != nil {
					t.Fatal(f)
				}
				m := set.Match(req)
				asked, refusal = m.Upgrade(asked)
			}
			got := fmt.Sprint(asked, " <nil>")
			if refusal != nil {
				got = refusal.Detail
				if len(asked) > 0 || refusal.Problem != ProblemDenied && refusal.Problem != ProblemOverride {
					t.Errorf("%s with %v", refusal.Problem, asked)
				}
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
