package rules

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// BenchmarkMail is everything that rules do before a mail of 20 KiB can be claimed: one with an attachment, and one whose
// long text is quoted-printable in Latin 1.
func BenchmarkMail(b *testing.B) {
	set := load(b, byMail)
	line := "A line of a mail, as people write them, with some words.\r\n"
	attached := strings.NewReplacer("AAEC", strings.TrimSpace(strings.Repeat(strings.Repeat("QUJD", 19)+"\r\n", 220)), "second", strings.Repeat(line, 30)).Replace(wholeMail)
	for name, mail := range map[string]string{
		"attachment": attached,
		"text":       strings.Replace(wholeMail, "caf=E9", strings.Repeat(line, (20<<10-len(wholeMail))/len(line)), 1),
	} {
		body := []byte(`{"raw":"` + base64.URLEncoding.EncodeToString([]byte(mail)) + `"}`)
		b.Run(name, func(b *testing.B) { benchDecide(b, set, "/send", body, "mail-"+name) })
	}
}

// BenchmarkJSONBody is the same for JSON of 2 KiB.
func BenchmarkJSONBody(b *testing.B) {
	set := load(b, connectorHead+simpleMutation)
	body := []byte(`{"name":"n","amount":1500,"lines":[{"sku":"A-1","price":199.5},{"sku":"B-7","price":1101}],"note":"`)
	body = append(append(body, strings.Repeat("n", 2<<10-len(body)-2)...), `"}`...)
	benchDecide(b, set, "/things/x", body, "json")
}

// BenchmarkGraphQLBody is the same for a mutation of GraphQL, as a vendor's SDK sends it.
func BenchmarkGraphQLBody(b *testing.B) {
	set := load(b, `apiVersion: keep/v1
connector: graphql
version: 1
hosts: [api.test]
reads: []
account: header[?'x-account'].orValue('')
operations:
  - {name: query, match: {method: POST, path: /graphql, graphql: {operation: query}}, effect: read}
  - {name: other, match: {method: POST, path: /graphql, graphql: {operation: mutation, field: [issueUpdate, issueDelete]}}, effect: deny}
  - name: create
    match: {method: POST, path: /graphql, graphql: {operation: mutation, field: issueCreate}}
    effect: mutation
    describe: "Create {graphql.args.input.title}"
    identity: {team: graphql.args.input.teamId, title: graphql.args.input.title.trim()}
    native_key: {graphql: input.id, format: uuid4, when_present: keep_first}
    reconcile: [{none: why}]
    manual_check: look
`)
	benchDecide(b, set, "/graphql", []byte(`{"query":"fragment Issue on IssuePayload {\n  __typename\n  lastSyncId\n  issue {\n    id\n    identifier\n    url\n  }\n  success\n}\n\n`+
		`mutation createIssue($input: IssueCreateInput!) {\n  issueCreate(input: $input) {\n    ...Issue\n  }\n}","variables":{"input":{`+
		`"teamId":"9cfb482a-81e3-4154-b5b9-2c805e70a02d","title":"It broke","priority":2,"labelIds":["a","b"],"description":"`+strings.Repeat("d", 512)+`"}}}`), "graphql")
}

// BenchmarkConnectors decides about a request with few connectors and with many, in turns.
func BenchmarkConnectors(b *testing.B) {
	sets := map[int]*Set{}
	for _, n := range []int{4, 60} {
		var files []File
		for i := range n {
			text := strings.NewReplacer("connector: test", fmt.Sprintf("connector: test%d", i), "api.test", fmt.Sprintf("a%d.test, '{x}.a%d.test'", i, i)).Replace(withOperation())
			files = append(files, File{Name: fmt.Sprint(i), Data: []byte(text)})
		}
		set, findings := Load(files, nil, Defaults{})
		if set == nil {
			b.Fatal(findings)
		}
		sets[n] = set
	}
	raw := benchRequest("/things", []byte(`{"name":"n"}`))
	took := map[int]time.Duration{}
	for b.Loop() {
		for n, set := range sets {
			raw.Authority = fmt.Sprintf("y.a%d.test", n/2)
			begun := time.Now()
			for range 1000 {
				benchOne(b, set, raw)
			}
			took[n] += time.Since(begun)
		}
	}
	b.ReportMetric(float64(took[60])/float64(took[4]), "connectors-ratio")
}

// BenchmarkLoad loads all bundled connectors, as a start does.
func BenchmarkLoad(b *testing.B) {
	entries, err := os.ReadDir("../connectors")
	if err != nil {
		b.Fatal(err)
	}
	var files []File
	for _, e := range entries {
		if name, bundled := strings.CutSuffix(e.Name(), ".yaml"); bundled {
			data, err := os.ReadFile("../connectors/" + e.Name())
			if err != nil {
				b.Fatal(err)
			}
			files = append(files, File{Name: e.Name(), Data: data, Bundled: name, Late: true})
		}
	}
	for b.Loop() {
		if set, findings := Load(files, nil, Defaults{}); set == nil {
			b.Fatal(findings)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1e3/float64(b.N), "load-ms")
}

// reportMicroseconds reports the time of a round by a name.
func reportMicroseconds(b *testing.B, name string) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), name+"-µs")
}

func benchRequest(target string, body []byte) Raw {
	return Raw{
		Method: "POST", Scheme: "https", Authority: "api.test", Target: target,
		Header: map[string][]string{"Content-Type": {"application/json"}}, Body: body, HasBody: true,
	}
}

func benchDecide(b *testing.B, set *Set, target string, body []byte, name string) {
	b.Helper()
	raw := benchRequest(target, body)
	b.ReportAllocs()
	for b.Loop() {
		benchOne(b, set, raw)
	}
	reportMicroseconds(b, name)
}

// benchOne matches, and derives the key.
func benchOne(b *testing.B, set *Set, raw Raw) {
	b.Helper()
	req, _ := Normalise(raw)
	m := set.Match(req)
	if m.Operation == nil {
		b.Fatal(m.Refusal)
	}
	if _, refusal := m.Operation.Derive(req, m); refusal != nil {
		b.Fatal(refusal)
	}
}
