package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/upstream"
)

// One dispatch: send once, drain the answer, judge the evidence.
func ExampleSender_Send() {
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id": "tr_1"}`)
	}))
	defer bank.Close()

	s := upstream.New(upstream.Config{})
	defer s.Close()
	to, err := url.Parse(bank.URL + "/transfers")
	if err != nil {
		fmt.Println(err)
		return
	}
	answer := s.Send(context.Background(), &upstream.Request{
		Method: http.MethodPost, URL: to, Body: upstream.Bytes(`{"amount": 5}`), Total: time.Minute,
	})
	defer answer.Close()
	content, err := io.ReadAll(answer.Body)
	verdict := upstream.Judge(answer.Evidence(), upstream.FactsOf(http.MethodPost, answer, time.Now()), verdict.Opinion{})
	fmt.Println(verdict.Kind, answer.Status, string(content), err)
	// Output: applied 201 {"id": "tr_1"} <nil>
}
