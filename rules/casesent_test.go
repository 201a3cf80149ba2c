package rules

import (
	"slices"
	"strings"
	"testing"
)

// sentFile has an operation that is sent in steps, one that can be undone, and neither.
const sentFile = connectorHead + `
  - name: mail
    match: {method: POST, path: /send}
    effect: mutation
    identity: {subject: json.subject}
    send:
      - prepare: draft
        post: /drafts
        json: {subject: {cel: json.subject}}
        keep: {draft: response.json.id}
      - prepare: check
        post: "/drafts/{mutation.kept.draft}/check"
        expect: response.status == 202
        keep: {at: response.json.at}
      - commit:
        post: /drafts/send
        json: {id: {cel: mutation.kept.draft}, at: {cel: mutation.kept.at}}
    reconcile:
      - probe:
          get: "/drafts/{mutation.kept.draft}"
          expect: response.status in [200, 404]
          observe: [{when: response.status == 404, is: applied}, {when: response.status == 200, is: absent}]
  - name: pay
    match: {method: POST, path: /pay}
    effect: mutation
    identity: {of: json.of}
    marker: {json: mark}
    reconcile:
      - probe:
          get: /payments
          candidates: response.json
          ours: found.mark == mutation.marker
          tie: marker
          id: found.id
          created: found.at
    compensate:
      post: "/payments/{object}/reversals"
      json: {of: {cel: json.of}}
      reconcile:
        - probe:
            get: "/payments/{object}"
            observe: [{when: response.json.reversed, is: applied}]
  - name: book
    match: {method: POST, path: /book}
    effect: mutation
    identity: {of: json.of}
    native_key: {json: id, when_present: keep_first}
    reconcile:
      - probe:
          get: "/books/{mutation.vendor_key}"
          observe: [{when: response.status == 200, is: applied}]
cases:
`

func TestCasesSayWhatIsSent(t *testing.T) {
	t.Parallel()
	const mail = "request: {method: POST, url: 'https://api.test/send', body: {subject: s}}, "
	const pay = "request: {method: POST, url: 'https://api.test/pay', body: {of: o}}, "
	const book = "request: {method: POST, url: 'https://api.test/book', body: {of: o}}, "
	const own = "request: {method: POST, url: 'https://api.test/book', body: {of: o, id: mine}}, "
	const draft, check, commit = "{method: POST, url: 'https://api.test/drafts', headers: {content-type: application/json}, body: {subject: s}}",
		"{method: POST, url: 'https://api.test/drafts/d1/check'}", "{method: POST, url: 'https://api.test/drafts/send', body: {id: d1, at: 7}}"
	const both = "send: [{body: {id: d1}}, {status: 202, body: {at: 7}}], "
	for name, c := range map[string]struct{ line, part string }{
		"all steps":                        {mail + both + "expect: {sent: [" + draft + ", " + check + ", " + commit + "], kept: {draft: d1, at: 7}}", ""},
		"the first step alone":             {mail + "expect: {sent: [" + draft + "]}", ""},
		"as far as they are answered":      {mail + "send: [{body: {id: d1}}], expect: {sent: [" + draft + ", " + check + "]}", ""},
		"a step that is refused":           {mail + "send: [{body: {id: d1}}, {status: 409}], expect: {sent: [" + draft + ", " + check + "], verdict: failed}", ""},
		"a step that isn't":                {mail + "send: [{status: 500}], expect: {verdict: applied}", `verdict is "failed", expected "applied"`},
		"a step that isn't, with why":      {mail + "send: [{status: 500}], expect: {verdict: applied}", "(the step draft isn't gone on from: it was answered 500 instead of 200 or 201)"},
		"a class of a step":                {mail + "send: [{status: 500}], expect: {verdict: failed, class: logic}", "expect.class is compared with nothing"},
		"a verdict of steps half answered": {mail + "send: [{body: {id: d1}}], response: {}, expect: {verdict: default}", "expect.verdict is compared with nothing; correct what the case ends at"},
		"another commit":                   {mail + both + "expect: {sent: [" + draft + ", " + check + ", " + check + "]}", `sent[2] url is "https://api.test/drafts/send"`},
		"a request too few":                {mail + both + "expect: {sent: [" + draft + "]}", "3 requests are sent, expected 1"},
		"another content":                  {mail + "expect: {sent: [{method: POST, url: 'https://api.test/drafts', body: {subject: t}}]}", "sent[0] body is"},
		"another field":                    {mail + "expect: {sent: [{method: POST, url: 'https://api.test/drafts', headers: {content-type: text/plain}}]}", "sent[0] header Content-Type is"},
		"something else kept":              {mail + both + "expect: {kept: {draft: d2, at: 7}}", "kept is"},
		"an answer too many":               {mail + "send: [{body: {id: d1}}, {status: 202, body: {at: 7}}, {}], expect: {kept: {draft: d1, at: 7}}", "2 preparing steps"},
		"the commit's verdict":             {mail + both + "response: {status: 200}, expect: {verdict: default}", ""},
		"what a probe sees of what's kept": {mail + both + "probe: [{status: 404}], expect: {observation: applied}", ""},
		"steps of what has none":           {pay + "send: [{}], expect: {operation: pay}", "isn't sent in steps"},
		"what goes out in one":             {pay + "expect: {sent: [{method: POST, url: 'https://api.test/pay', body: {of: o, mark: " + CaseMarker + "}}]}", ""},
		"a key that is made":               {book + "expect: {sent: [{method: POST, url: 'https://api.test/book', body: {of: o, id: " + CaseVendorKey + "}}]}", ""},
		"the script's own key":             {own + "expect: {sent: [{method: POST, url: 'https://api.test/book', body: {of: o, id: mine}}]}", ""},
		"what is asked by that":            {own + "probe: [{}], expect: {asked: [{method: GET, url: 'https://api.test/books/mine'}], observation: applied}", ""},
		"an undo":                          {pay + "undo: p2, expect: {sent: [{method: POST, url: 'https://api.test/payments/p2/reversals', body: {of: o}}]}", ""},
		"an undo of something else":        {pay + "undo: p2, expect: {sent: [{method: POST, url: 'https://api.test/payments/p1/reversals'}]}", "sent[0] url is"},
		"an undo that finds nothing":       {pay + "undo: p2, response: {status: 404}, expect: {verdict: applied}", ""},
		"an undo that is looked up":        {pay + "undo: p2, probe: [{body: {reversed: true}}], expect: {observation: applied}", ""},
		"an undo that leads elsewhere":     {pay + "undo: '..', expect: {operation: pay}", "can't be undone"},
		"an undo of what has none":         {mail + "undo: p2, expect: {operation: mail}", "has no compensate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			findings := load(t, sentFile+"  - {name: the case, "+c.line+"}\n").RunCases()
			if c.part == "" && len(findings) > 0 {
				t.Errorf("does not hold: %v", findings)
			}
			if c.part != "" && !slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Problem+"; "+f.Fix, c.part) && f.Value == "the case" }) {
				t.Errorf("findings %v, want %q", findings, c.part)
			}
		})
	}
}
