package trials

import (
	"os"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"keep-proxy/rules"
)

// spoil replaces texts of a file, each of which must be there.
func spoil(tb testing.TB, text string, pairs ...string) []byte {
	tb.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			tb.Fatalf("the file has no %q to spoil", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return []byte(text)
}

// probed is Stripe's connector without the key: what it knows it finds by its marker.
var probed = []string{
	"    native_key: {header: Idempotency-Key, format: uuid, max_length: 255, window: 24h, when_present: replace}\n", "",
	"      - resend: {}\n", "",
}

// Text writes the report for people.
func (r Report) Text() string {
	var out strings.Builder
	for _, row := range r.Rows {
		out.WriteString(row.Text())
	}
	return out.String()
}

func TestTrialsFailWhereAConnectorIsSpoilt(t *testing.T) {
	t.Parallel()
	connector, err := os.ReadFile("testdata/refunds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fake, err := os.ReadFile("../../internal/fakes/data/testdata/refunds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(connector)
	before := func(at, more string) []string { return []string{at, more + at} }
	outcome := func(line string) []string {
		return before("      - {when: response.status == 409, then: uncertain}\n", line)
	}
	cases := []struct {
		name, trial string
		connector   []string
		fake        []string
		edit        func(int, rules.Raw) rules.Raw
	}{
		{name: "a success counts as failed", trial: "applied", connector: outcome("      - {when: response.status == 200, then: failed, class: logic}\n")},
		{name: "the second run asks for another payment", trial: "replayed", edit: func(nth int, r rules.Raw) rules.Raw {
			if nth == 3 {
				r.Body = []byte("payment_intent=pi_2&amount=500")
			}
			return r
		}},
		{name: "the marker is written elsewhere", trial: "lost answer found", connector: append([]string{`marker: {form: "metadata[keep_id]"}`, `marker: {form: "metadata[other]"}`}, probed...)},
		{name: "an absence isn't proof", trial: "lost answer found", connector: probed, fake: []string{"settings:\n", "settings:\n  lag: 48h\n"}},
		{name: "the probe sees what isn't there", trial: "lost answer absent", connector: append([]string{"candidates: response.json.data\n", "candidates: \"[{'id': 're_9', 'created': int(timestamp('2030-01-01T00:00:00Z')), 'metadata': {'keep_id': mutation.marker}}]\"\n"}, probed...)},
		{name: "settle is shorter than the API takes", trial: "late commit inside settle", fake: []string{"settings:\n", "commit: 2m\nsettings:\n"}, connector: append([]string{
			"    on_absent: fail\n", "    on_absent: fail\n    settle: 30s\n    absent_spacing: 1s\n    bounds: {commit: 10s, lag: 1s, source: nowhere}\n",
		}, probed...)},
		{name: "the probe looks at one object alone", trial: "duplicate found", connector: append([]string{"candidates: response.json.data\n", "candidates: \"response.json.data.size() > 0 ? [response.json.data[0]] : []\"\n"}, probed...)},
		{name: "a 429 counts as applied", trial: "429 with Retry-After", connector: outcome("      - {when: response.status == 429, then: applied}\n")},
		{name: "the second run sends another identity", trial: "changed payload", edit: func(nth int, r rules.Raw) rules.Raw {
			if nth == 2 {
				r.Body = []byte("payment_intent=pi_2&amount=500")
			}
			return r
		}},
		{name: "any object counts as ours", trial: "two items", connector: append([]string{"ours: found.?metadata.?keep_id.orValue('') == mutation.marker", "ours: mutation.marker != ''"}, probed...)},
		{name: "the key is written elsewhere", trial: "resend inside the window", connector: []string{"header: Idempotency-Key", "header: Other-Key"}},
		{name: "keys are forgotten earlier", trial: "resend after the window", connector: []string{"window: 24h", "window: 720h"}},
		{name: "an error that proves nothing counts as failed", trial: "error: server error, after the effect", connector: outcome("      - {when: response.status == 500, then: failed, class: logic}\n")},
		{name: "an error that does nothing counts as applied", trial: "error: card declined", connector: outcome("      - {when: response.status == 402, then: applied}\n")},
	}
	spoilt := map[string]bool{}
	for _, tc := range cases {
		spoilt[tc.trial] = true
	}
	for _, k := range Kinds() {
		if !spoilt[k.Name] {
			t.Errorf("nothing shows that the trial %q can fail", k.Name)
		}
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			report, err := Run(t.Context(), Options{
				Connector: spoil(t, text, tc.connector...), Fake: spoil(t, string(fake), tc.fake...), Version: "test", Log: zerolog.Nop(), only: []string{tc.trial}, edit: tc.edit,
			})
			if err != nil {
				t.Fatal(err)
			}
			if !report.Failed() {
				t.Errorf("the trial passes:\n%s", report.Text())
			}
		})
	}
}

// Without a key for each sending nothing is written under the script's signature. An object is then known by its content.
func TestAnObjectIsFoundByItsContentAlone(t *testing.T) {
	t.Parallel()
	fake, err := os.ReadFile("../../connectors/fakes/aws-s3.yaml")
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), Options{
		Name: "aws-s3", Version: "test", Log: zerolog.Nop(), only: []string{"lost answer found", "lost answer absent", "late commit inside settle"},
		Fake: spoil(t, string(fake), "use: always", "use: reconcile", " && header[?'x-amz-content-sha256'].orValue('') != ''", ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range report.Rows {
		for _, cell := range row.Cells {
			if row.Operation == "object.put" && cell.Outcome != OK {
				t.Errorf("%s: %s %s", cell.Trial, cell.Outcome, cell.Said)
			}
		}
	}
}

// Whoever wrote the rule must see where it is wrong.
func TestAReasonIsTold(t *testing.T) {
	t.Parallel()
	o := refunds(t)
	for _, c := range []struct {
		name, trial, want string
		connector         []string
	}{
		{"a mistake in the probe", "lost answer found", "idd", append([]string{"id: found.id\n", "id: found.idd\n"}, probed...)},
		{"an account that can't be asked for", "late commit inside settle", "404", []string{
			"account: \"[header[?'stripe-context'].orValue(''), header[?'stripe-account'].orValue('')].filter(a, a != '').join(' ')\"", "account: {get: /v1/me, value: response.json.id}",
			"account: acct_7 acct_8", "account: case-account", "account: acct_7", "account: case-account", `account: ""`, "account: case-account",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := o
			o.Connector, o.only = spoil(t, string(o.Connector), c.connector...), []string{c.trial}
			report, err := Run(t.Context(), o)
			if err != nil || !strings.Contains(report.Text(), c.want) || strings.Contains(report.Text(), "%!") {
				t.Errorf("%v: want %q in\n%s", err, c.want, report.Text())
			}
		})
	}
}

// By the script's own key an API takes the requests of two items as one.
func TestTwoItemsWithOneKeyOfTheScriptAreOne(t *testing.T) {
	t.Parallel()
	bundled, err := os.ReadFile("../../connectors/aws-sqs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fake, err := os.ReadFile("../../connectors/fakes/aws-sqs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, once, _ := strings.Cut(string(bundled), "operations:\n")
	once, _, _ = strings.Cut(once, "  # Without an id")
	once = strings.Replace(once, `      - none: "nothing shows a message but to its consumer, and SQS knows its id for five minutes alone"`, `      - resend: {}
    native_key: {aws: MessageDeduplicationId, when_present: keep_first, window: 5m}
    settle: 1m
    bounds: {commit: 50s, lag: 1s, source: measured}`, 1)
	file := "apiVersion: keep/v1\nconnector: aws-sqs\nextends: aws-sqs\nversion: 1\noperations:\n" + once
	report, err := Run(t.Context(), Options{
		Connector: []byte(file), Fake: fake, Version: "test", Log: zerolog.Nop(), only: []string{"lost answer found", "two items", "resend inside the window"},
		Operations: []string{"message.send.once"},
	})
	if err != nil || len(report.Rows) != 1 {
		t.Fatal(report, err)
	}
	for _, cell := range report.Rows[0].Cells {
		if cell.Outcome != OK {
			t.Errorf("%s: %s %s", cell.Trial, cell.Outcome, cell.Said)
		}
	}
}

func TestAMistakeIsShownInTheFileThatWasNamed(t *testing.T) {
	t.Parallel()
	o := refunds(t)
	o.Name, o.Connector = "mine/refunds.yaml", spoil(t, string(o.Connector), "reads: safe-methods", "reads: all")
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "mine/refunds.yaml:") || strings.Contains(err.Error(), ownFile) {
		t.Error(err)
	}
}
