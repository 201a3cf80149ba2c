package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// chat keeps metadata with each message, as Slack does: as JSON, or as JSON text in a form. The first answer is lost.
type chat struct {
	mu    sync.Mutex
	posts int
	said  []map[string]any
}

func (c *chat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		answer(w, "messages", append([]map[string]any{}, c.said...))
		return
	}
	message := map[string]any{}
	body, _ := io.ReadAll(r.Body)
	if json.Unmarshal(body, &message) != nil {
		form, _ := url.ParseQuery(string(body))
		var metadata any
		_ = json.Unmarshal([]byte(form.Get("metadata")), &metadata)
		message = map[string]any{"channel": form.Get("channel"), "text": form.Get("text"), "metadata": metadata}
	}
	message["ts"] = "1767323046.123"
	c.said = append(c.said, message)
	if c.posts++; c.posts == 1 {
		panic(http.ErrAbortHandler)
	}
	answer(w, "message", message)
}

func answer(w io.Writer, name string, value any) {
	if err := json.NewEncoder(w).Encode(map[string]any{"ok": true, name: value}); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// chatRules are those of the chat, at HOST.
const chatRules = `apiVersion: keep/v1
connector: chat
version: 1
hosts: ["HOST"]
reads: safe-methods
operations:
  - name: message.post
    match: {method: POST, path: /api/chat.postMessage}
    effect: mutation
    identity: {channel: json.?channel.or(form.?channel).value(), text: json.?text.or(form.?text).value()}
    marker:
      - {json: metadata, value: {event_type: keep, event_payload: {keep_id: {cel: mutation.marker}}}}
      - {form: metadata, value: {event_type: keep, event_payload: {keep_id: {cel: mutation.marker}}}}
    reconcile:
      - probe:
          get: /api/conversations.history
          candidates: response.json.messages
          ours: found.?metadata.event_payload.keep_id.orValue('') == mutation.marker
          tie: marker
          id: found.ts
          result: {json: {ok: true, message: {cel: found}}}
    manual_check: "look"
`

// TestALostMessageIsFoundByItsMetadata is a marker in a structure from end to end, in both ways in which clients send it.
func TestALostMessageIsFoundByItsMetadata(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]struct{ kind, body string }{
		"JSON":                {"application/json; charset=utf-8", `{"channel":"c","text":"hi"}`},
		"a form":              {"application/x-www-form-urlencoded", "channel=c&text=hi"},
		"JSON with its own":   {"application/json", `{"channel":"c","text":"hi","metadata":{"event_type":"paid","event_payload":{"of":7}}}`},
		"a form with its own": {"application/x-www-form-urlencoded", "channel=c&text=hi&metadata=" + url.QueryEscape(`{"event_type":"paid","event_payload":{"of":7}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &chat{}
			server := httptest.NewServer(api)
			t.Cleanup(server.Close)
			w := prepare(t)
			dir := t.TempDir()
			rewriteConnectors(t, w.settings.Connectors, dir, strings.NewReplacer())
			w.settings.Connectors = dir
			rule := strings.ReplaceAll(chatRules, "HOST", strings.TrimPrefix(server.URL, "http://"))
			if err := os.WriteFile(filepath.Join(dir, "chat.yaml"), []byte(rule), 0o600); err != nil {
				t.Fatal(err)
			}
			w.start()
			post := func(s *scriptRun) reply {
				return s.do(http.MethodPost, server.URL+"/api/chat.postMessage", asked.body, field("Content-Type", asked.kind))
			}
			first := post(w.open("a")).wantApplied(http.StatusOK)
			post(w.again("a")).wantReplay(first)
			m := w.mutationsOf("a")[0]
			metadata, _ := api.said[0]["metadata"].(map[string]any)
			payload, _ := metadata["event_payload"].(map[string]any)
			if api.posts != 1 || len(w.mutationsOf("a")) != 1 || payload["keep_id"] == nil {
				t.Errorf("%d were sent, as %d mutations: %v", api.posts, len(w.mutationsOf("a")), api.said)
			}
			if own := strings.Contains(name, "own"); own != (payload["of"] == 7.0) || own != (metadata["event_type"] == "paid") {
				t.Errorf("the script's own is %v", metadata)
			}
			if m.Result == nil || m.Result.Source != "observation" {
				t.Errorf("the result is %+v", m.Result)
			}
		})
	}
}
