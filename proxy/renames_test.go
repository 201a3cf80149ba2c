package proxy

import (
	"cmp"
	"strings"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// A renamed connector or operation meets what it did under its old name. What can't be told is refused, unless what
// is asked for is another mutation.
func TestARenameMeetsItsPast(t *testing.T) {
	t.Parallel()
	const (
		x, y   = `{"to":"x"}`, `{"to":"y"}`
		own    = "connector: own\n"
		wasAPI = "connector: own\nwas: api\n"
	)
	type change []string
	for name, c := range map[string]struct {
		then, now   change
		body, again string
		path        string // of both, or then>now
		moved       bool
		want        string // replayed, sent, or a problem
	}{
		"the connector":                     {now: change{"connector: api\n", own}, want: "replayed"},
		"the connector, which says so":      {now: change{"connector: api\n", wasAPI}, want: "replayed"},
		"and its version":                   {now: change{"connector: api\nversion: 1", "connector: own\nversion: 2"}, want: "replayed"},
		"another mutation after that":       {now: change{"connector: api\n", own}, again: y, want: "sent"},
		"which must not drift":              {then: change{"    max_body", "    drift: refuse\n    max_body"}, now: change{"connector: api\n", own, "    max_body", "    drift: refuse\n    max_body"}, again: y, want: "drift"},
		"and its operation":                 {now: change{"connector: api\n", own, "name: pay\n", "name: transfer\n"}, want: "replayed"},
		"and the identity's name":           {now: change{"connector: api\n", own, "{to: json.to}\n    payload", "{payee: json.to}\n    payload"}, want: "replayed"},
		"and the identity's place":          {now: change{"connector: api\n", own, "{to: json.to}\n    payload: {minor: [json.note]}", "{to: json.payee}\n    payload: {ignore: [json.to, json.payee]}"}, again: `{"payee":"x"}`, want: "replayed"},
		"and the identity's name and place": {now: change{"connector: api\n", own, "{to: json.to}\n    payload", "{payee: json.payee}\n    payload"}, again: `{"payee":"x"}`, want: "ambiguous-record"},
		"and the path":                      {now: change{"connector: api\n", own, "path: /pay", "path: /pays"}, path: "/pays", want: "ambiguous-record"},
		"and the path, and it says so":      {now: change{"connector: api\n", wasAPI, "path: /pay", "path: /pays"}, path: "/pays", want: "replayed"},
		"and the path, of another mutation": {now: change{"connector: api\n", own, "path: /pay", "path: /pays"}, path: "/pays", again: y, want: "sent"},
		"and the hosts":                     {now: change{"connector: api\n", own}, moved: true, want: "ambiguous-record"},
		"and the hosts, and it says so":     {now: change{"connector: api\n", wasAPI}, moved: true, want: "replayed"},
		"and a list of hosts":               {now: change{"connector: api\n", own, `"HOST"`, `"HOST", "elsewhere.test"`}, want: "replayed"},
		"the operation and its path":        {now: change{"name: pay\n", "name: transfer\n", "path: /pay", "path: /pays"}, path: "/pays", want: "ambiguous-record"},
		"and it says so":                    {now: change{"name: pay\n", "name: transfer\n    was: pay\n", "path: /pay", "path: /pays"}, path: "/pays", want: "replayed"},
		"to what was another operation":     {now: change{"name: pay\n", "name: transfer\n    was: pay\n", "path: /pay}", "path: /shape}", "path: /shape}\n", "path: /old}\n"}, path: "/shape", want: "replayed"},
		"the path's variable":               {now: change{"name: upload\n", "name: put\n    was: upload\n", "/files/{name}", "/v2/{name}"}, path: "/files/a>/v2/a", want: "replayed"},
		"the path's variable, and its name": {now: change{"name: upload\n", "name: put\n    was: upload\n", "/files/{name}", "/v2/{file}", "{path.name}", "{path.file}", "{name: path.name}", "{file: path.file}"}, path: "/files/a>/v2/a", want: "ambiguous-record"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			from, to, two := strings.Cut(c.path, ">")
			if !two {
				from, to = "/pay", cmp.Or(from, "/pay")
			}
			body := cmp.Or(c.body, x)
			w.use(changed(c.then...))
			first := w.open("a")
			wantAnswer(t, first.post(from, body), 201, `{"id":1}`, false)
			w.end(first)
			if c.moved {
				w.authority = strings.Replace(w.authority, "127.0.0.1", "localhost", 1)
				w.upstream.URL = strings.Replace(w.upstream.URL, "127.0.0.1", "localhost", 1)
			}
			w.use(changed(c.now...))
			answer := w.open("a").post(to, cmp.Or(c.again, body))
			sends := map[bool]int{from == to: 1}[true]
			switch c.want {
			case "sent":
				sends++
				fallthrough
			case "replayed":
				wantAnswer(t, answer, 201, `{"id":1}`, c.want == "replayed")
			default:
				if answer.err != nil || answer.problem() != c.want {
					t.Errorf("%d %s %v", answer.status, answer.body, answer.err)
				}
			}
			w.wantSends(to, sends)
		})
	}
}

// No host is of two connectors that are in force: what is in force beside one has no record of its requests.
func TestAVersionInForceBesideIsElsewhere(t *testing.T) {
	t.Parallel()
	set, findings := rules.Load([]rules.File{
		{Name: "a.yaml", Data: []byte(changed("HOST", "a.test"))},
		{Name: "b.yaml", Data: []byte(changed("connector: api", "connector: b", "HOST", "b.test"))},
	}, nil, rules.Defaults{})
	if set == nil {
		t.Fatal(findings)
	}
	now, beside := set.Connector("api"), set.Connector("b")
	rule := func(c *rules.Connector) ledger.ItemRule {
		return ledger.ItemRule{Connector: c.Name, Operation: "pay", Hash: c.Hash, Hosts: c.HostsInForce}
	}
	older, moved, gone := rule(beside), rule(beside), rule(beside)
	older.Hash, moved.Hosts, gone.Connector = "older", "a.test", "gone"
	for what, c := range map[string]struct {
		rule ledger.ItemRule
		want bool
	}{
		"beside": {rule(beside), true}, "its own": {rule(now), false}, "an older version": {older, false}, "other hosts": {moved, false}, "gone": {gone, false},
	} {
		if got := elsewhere(set, now)(c.rule); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}
