package proxy

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"strings"
	"testing"
)

// A refusal is put where clients look that show nothing else of an error.
func TestARefusalIsInTheClientsWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	const words = "POST on this path is no operation of the connector api"
	for name, c := range map[string]struct {
		body   string
		header []string
		status int
		kind   string
		// message reads what the client shows.
		message func(body []byte) string
	}{
		"gh, git-lfs":     {payX, nil, 403, "application/problem+json", member("message")},
		"googleapiclient": {payX, nil, 403, "application/problem+json", member("error", "message")},
		"JSON-RPC": {
			`{"method":"tools/call","params":{},"jsonrpc":"2.0","id":7}`, nil, 200, "application/json", func(body []byte) string {
				if !strings.Contains(string(body), `"id":7`) || !strings.Contains(string(body), `urn:keep:problem:unmatched`) {
					return ""
				}
				return member("error", "message")(body)
			},
		},
		"a notification of JSON-RPC": {`{"jsonrpc":"2.0","method":"x"}`, nil, 403, "application/problem+json", member("message")},
		"AWS's JSON": {
			`{}`, []string{"Authorization", "AWS4-HMAC-SHA256 x", "Content-Type", "application/x-amz-json-1.0", "X-Amz-Target", "Table.PutItem"},
			403, "application/x-amz-json-1.0", func(body []byte) string {
				if member("__type")(body) != "KeepProxyUnmatched" {
					return ""
				}
				return member("message")(body)
			},
		},
		"AWS's Query": {
			`Action=Publish`, []string{"Authorization", "AWS4-HMAC-SHA256 x", "Content-Type", "application/x-www-form-urlencoded; charset=utf-8"},
			403, "text/xml", func(body []byte) string {
				var answer struct {
					Error struct {
						Code    string `xml:"Code"`
						Message string `xml:"Message"`
					} `xml:"Error"`
				}
				if xml.Unmarshal(body, &answer) != nil || answer.Error.Code != "KeepProxyUnmatched" {
					return ""
				}
				return answer.Error.Message
			},
		},
		"S3": {
			`x`, []string{"Authorization", "AWS4-HMAC-SHA256 x", "Content-Type", "text/plain"}, 403, "text/xml", func(body []byte) string {
				var answer struct {
					XMLName xml.Name `xml:"Error"`
					Message string   `xml:"Message"`
				}
				_ = xml.Unmarshal(body, &answer)
				return answer.Message
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := send(r.client, http.MethodPost, w.upstream.URL+"/elsewhere", c.body, c.header...)
			if g.status != c.status || g.header.Get("Content-Type") != c.kind || !strings.HasPrefix(c.message([]byte(g.body)), words) {
				t.Errorf("%d %s: %s", g.status, g.header.Get("Content-Type"), g.body)
			}
			if !strings.HasPrefix(g.header.Get("Proxy-Status"), "keep-proxy; error=") {
				t.Errorf("Proxy-Status %q", g.header.Get("Proxy-Status"))
			}
		})
	}
}

// member reads a string out of JSON.
func member(path ...string) func([]byte) string {
	return func(body []byte) string {
		var value any
		if json.Unmarshal(body, &value) != nil {
			return ""
		}
		for _, name := range path {
			object, _ := value.(map[string]any)
			value = object[name]
		}
		text, _ := value.(string)
		return text
	}
}
