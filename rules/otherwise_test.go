package rules

import (
	"strings"
	"testing"
)

// Somebody else may have made an object with our unique value, after the claim. What differs in it tells so.
func TestAnObjectOfAnotherPayloadIsNotTakenForOurs(t *testing.T) {
	t.Parallel()
	const form = "Content-Type: application/x-www-form-urlencoded"
	for name, tc := range map[string]struct {
		body, found, header string
		want                Seen
	}{
		"the same":                             {`{"ref":"r","amount":1}`, `"amount":1`, "", SeenApplied},
		"another amount":                       {`{"ref":"r","amount":1}`, `"amount":777`, "", SeenRetry},
		"the amount written otherwise":         {`{"ref":"r","amount":1}`, `"amount":"1.00"`, "", SeenApplied},
		"another text":                         {`{"ref":"r","to":"ann"}`, `"to":"bob"`, "", SeenRetry},
		"the text written otherwise":           {`{"ref":"r","to":" Ann"}`, `"to":"ann"`, "", SeenApplied},
		"another time":                         {`{"ref":"r","due":"2026-05-01T10:00:00Z"}`, `"due":"2026-05-01T11:00:00Z"`, "", SeenRetry},
		"the time written otherwise":           {`{"ref":"r","due":"2026-05-01T10:00:00Z"}`, `"due":"2026-05-01T12:00:00.000+02:00"`, "", SeenApplied},
		"another flag":                         {`{"ref":"r","gift":true}`, `"gift":false`, "", SeenRetry},
		"another value below":                  {`{"ref":"r","to":{"zip":1}}`, `"to":{"zip":2}`, "", SeenRetry},
		"more below":                           {`{"ref":"r","to":{"zip":1}}`, `"to":{"zip":1,"city":"x"}`, "", SeenApplied},
		"a field that the object lacks":        {`{"ref":"r","amount":1}`, `"x":1`, "", SeenApplied},
		"what isn't shown":                     {`{"ref":"r","amount":1}`, `"amount":null`, "", SeenApplied},
		"what became an object":                {`{"ref":"r","to":"c1"}`, `"to":{"id":"c1"}`, "", SeenApplied},
		"a list":                               {`{"ref":"r","tags":["a"]}`, `"tags":[{"name":"a"}]`, "", SeenApplied},
		"an id that the API chooses":           {`{"ref":"r","id":9}`, `"x":1`, "", SeenApplied},
		"a time that the API chooses":          {`{"ref":"r","at":"2020-01-01T00:00:00Z"}`, `"x":1`, "", SeenApplied},
		"what the rule ignores":                {`{"ref":"r","trace":1}`, `"trace":2`, "", SeenApplied},
		"what the rule calls minor":            {`{"ref":"r","note":{"text":"a"}}`, `"note":{"text":"b"}`, "", SeenApplied},
		"what the rule normalises":             {`{"ref":"r","text":"<b>a</b>"}`, `"text":"<b >a</b >"`, "", SeenApplied},
		"what is masked":                       {`{"ref":"r","pin":"1234"}`, `"pin":"5678"`, "", SeenApplied},
		"another amount in a form":             {`ref=r&amount=1`, `"amount":777`, form, SeenRetry},
		"the same in a form":                   {`ref=r&amount=1`, `"amount":1`, form, SeenApplied},
		"what the rule calls minor, in a form": {`ref=r&note=a`, `"note":"b"`, form, SeenApplied},
		"what a form repeats":                  {`ref=r&tag=a&tag=b`, `"tag":"a"`, form, SeenApplied},
	} {
		for _, tie := range []string{"unique", "content"} {
			rule := strings.NewReplacer("identity: {ref: json.ref}", "identity: {ref: json.?ref.or(form.?ref)}\n    secret: [json.pin]\n    payload: "+
				`{ignore: [json.trace], minor: [json.note, form.note], normalise: {json.text: html}}`, "json: {ref: {cel: json.ref}}", "json: {}",
				"ours: found.ref == json.ref", "ours: found.ref == 'r'", "unique", tie, "PAGES", "").Replace(listingOperation)
			_, op := operation(t, rule)
			stored := op.Redact(request(t, "POST https://api.test/things", tc.body))
			if tc.header != "" {
				stored = request(t, "POST https://api.test/things", tc.body, tc.header)
			}
			asking := begin(t, op, stored)
			asking.Answer(ok(`[{"id":1,"at":"2026-01-03T00:00:00Z","ref":"r",` + tc.found + `}]`))
			if o := asking.Observation(nobody, Clocks{Measured: true, SameBoot: true}); o.Seen != tc.want {
				t.Errorf("%s, %s: %v (%s), want %v", tie, name, o.Seen, o.Reason, tc.want)
			}
			if _, op = operation(t, strings.Replace(rule, "response.json\n", `"response.json.map(i, {'id': i.id, 'at': i.at, 'ref': i.ref})"`+"\n", 1)); tc.want == SeenRetry {
				listed := begin(t, op, stored)
				listed.Answer(ok(`[{"id":1,"at":"2026-01-03T00:00:00Z","ref":"r",` + tc.found + `}]`))
				if o := listed.Observation(nobody, Clocks{Measured: true, SameBoot: true}); o.Seen != SeenApplied {
					t.Errorf("%s, %s, left out of candidates: %v (%s)", tie, name, o.Seen, o.Reason)
				}
			}
			asking.env.Verifies = true
			if o := asking.Observation(nobody, Clocks{Measured: true, SameBoot: true}); o.Seen != SeenApplied {
				t.Errorf("%s, %s, where the effect is known: %v (%s)", tie, name, o.Seen, o.Reason)
			}
		}
	}
}
