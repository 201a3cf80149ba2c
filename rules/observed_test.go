package rules

import (
	"net/http"
	"strings"
	"testing"
)

func TestObservedRequestsHoldNoSecret(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, url, media, body string
		want                   string
	}{
		{"a token in the path", "https://hooks.test/services/T0001/xoxb123456789012345678", "", "", `"url":"https://hooks.test/services/T0001/%3Csecret%3E"`},
		{"a bot's token in the path", "https://api.test/bot123456789:AAE-s3cret/send", "", "", `"url":"https://api.test/%3Csecret%3E/send"`},
		{"a token without digits", "https://api.test/hook/QxzWvbRtNmKjHgFdSaPoIu", "", "", `"url":"https://api.test/hook/%3Csecret%3E"`},
		{"a word in the path", "https://api.test/create-a-very-long-thing-now", "", "", `"url":"https://api.test/create-a-very-long-thing-now"`},
		{"a member of the query", "https://api.test/a?name=n&token=s3cret", "", "", `?name=n&token=%3Csecret%3E"`},
		{"a member of JSON", "https://api.test/a", "", `{"a":[{"client_secret":"s3cret"}]}`, `{\"a\":[{\"client_secret\":\"<secret>\"}]}`},
		{"a member of a form", "https://api.test/a", formType, "name=n&password=s3cret", `"body":"name=n&password=%3Csecret%3E"`},
		{"any other content", "https://api.test/a", "text/plain", "s3cret", `"content-type":"text/plain"}}`},
		{"too long a body", "https://api.test/a", "", `"` + strings.Repeat("x", MostObserved) + `"`, `"content-type":""}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			header := map[string][]string{"Authorization": {"Bearer s3cret"}, "Content-Type": {tc.media}}
			req, refusal := Rebuild("POST", tc.url, header, []byte(tc.body))
			if refusal != nil {
				t.Fatal(refusal)
			}
			got := Observe(req, []byte(tc.body)).String()
			if !strings.Contains(got, tc.want) || strings.Contains(got, "s3cret") || len(got) > MostObserved {
				t.Errorf("kept %s, want %s", got, tc.want)
			}
			if o, err := ReadObserved(got); err != nil || o.Method != http.MethodPost {
				t.Errorf("read again: %+v, %v", o, err)
			}
		})
	}
}
