package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"keep-proxy/ledger"
)

// leaving is a client's connection: it may leave as soon as it has some of the answer, or
// all of it.
type leaving struct {
	*httptest.ResponseRecorder
	taken func(string)
}

// FlushError implements what http.ResponseController flushes by.
func (l *leaving) FlushError() error {
	l.taken(l.Body.String())
	return nil
}

// A client that has the whole answer may close its connection before the proxy goes on:
// it was answered all the same. One that left before that wasn't.
func TestAClientThatLeavesWithItsAnswerHasIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		length string
		parts  []string
		leaves string
		whole  bool
	}{
		"it stays":                             {"4", []string{"1234"}, "never", true},
		"it leaves with all":                   {"4", []string{"1234"}, "1234", true},
		"it leaves with all, written in parts": {"4", []string{"12", "34"}, "1234", true},
		"it leaves after the first part":       {"4", []string{"12", "34"}, "12", false},
		"it had left":                          {"4", []string{"1234"}, "gone", false},
		"it leaves in the middle of a stream":  {"", []string{"12", "34"}, "12", false},
		"no content, and it stays":             {"0", nil, "never", true},
		"no content, and it had left":          {"0", nil, "gone", false},
		"no content, and it leaves with that":  {"0", nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			if c.leaves == "gone" {
				leave()
			}
			w := &answerWriter{client: ctx, ResponseWriter: &leaving{httptest.NewRecorder(), func(got string) {
				if got == c.leaves {
					leave()
				}
			}}}
			if c.length != "" {
				w.Header().Set("Content-Length", c.length)
			}
			w.WriteHeader(http.StatusCreated)
			for _, part := range c.parts {
				if _, err := io.WriteString(w, part); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.finish(); got != c.whole || w.whole.Load() != c.whole {
				t.Errorf("whole is %t and %t, want %t", got, w.finish(), c.whole)
			}
		})
	}
}

// Before a delivery is noted, who has the whole answer and left is a caller still.
func TestAskingAgainBeforeADeliveryIsNotedIsARepeat(t *testing.T) {
	t.Parallel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	for name, c := range map[string]struct {
		whole bool
		want  role
	}{"it had its answer": {true, roleRepeated}, "it left without": {false, roleLead}} {
		f, key := newCalls(), ledger.Key{1}
		answer := &answerWriter{client: gone}
		answer.whole.Store(c.whole)
		first := &keyCaller{run: "r", payload: "p", client: gone, answer: answer}
		_, call := f.enter(key, first)
		f.answer(key, call, &reply{})
		if got, _ := f.enter(key, &keyCaller{run: "r", payload: "p", client: t.Context()}); got != c.want {
			t.Errorf("%s: role %d, want %d", name, got, c.want)
		}
	}
}

// Scripts that close their connection with each answer are told of each repeat.
func TestRepeatsOfAScriptThatClosesItsConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	for n := range 50 {
		body := `{"to":"x` + strings.Repeat("x", n) + `"}`
		for again := range 2 {
			client := w.newClient(r.user(), false)
			g := send(client, http.MethodPost, w.upstream.URL+"/pay", body, "Connection", "close")
			client.CloseIdleConnections()
			if again == 0 {
				wantAnswer(t, g, 201, `{"id":1}`, false)
				continue
			}
			wantProblem(t, g, "repeated", 422, "second intent")
		}
	}
	w.wantSends("/pay", 50)
}
