package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

func TestNewReadsAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://127.0.0.1:8081", "http://127.0.0.1:8081/", "127.0.0.1:8081", "localhost:8081", "https://keep.example", "unix:/run/a.sock", "unix:///run/a.sock"} {
		if _, err := client.New(client.Config{URL: address}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for name, address := range map[string]string{
		"nothing": "", "a relative socket": "unix:a.sock", "another scheme": "ftp://a", "a path": "http://a/v1", "a query": "http://a?x=1", "credentials": "http://a:b@c", "no host": "http://",
	} {
		if _, err := client.New(client.Config{URL: address}); err == nil || !strings.Contains(err.Error(), "unix:/path") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// serve answers every request with handler and returns a client of it.
func serve(t *testing.T, handler http.HandlerFunc) *client.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{URL: server.URL, Token: "secret\n"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		call func(context.Context, *client.Client) error
		want string
		body string
	}{
		{"open a run", func(ctx context.Context, c *client.Client) error {
			_, err := c.OpenRun(ctx, wire.OpenRun{Workflow: "w", Once: true}, "k")
			return err
		}, "POST /v1/runs key=k", `{"workflow":"w","once":true}`},
		{"list runs", func(ctx context.Context, c *client.Client) error {
			_, err := c.Runs(ctx, client.Filter{Running: true, Workflow: "w", Limit: 5})
			return err
		}, "GET /v1/runs?limit=5&running=true&workflow=w", ""},
		{"show a run whose id needs escaping", func(ctx context.Context, c *client.Client) error { _, err := c.Run(ctx, "../x y"); return err }, "GET /v1/runs/..%2Fx%20y", ""},
		{"heartbeat", func(ctx context.Context, c *client.Client) error {
			_, err := c.Heartbeat(ctx, "r", wire.Heartbeat{TTL: wire.Duration(time.Minute)})
			return err
		}, "POST /v1/runs/r/heartbeat", `{"ttl":"1m0s"}`},
		{"finish", func(ctx context.Context, c *client.Client) error {
			_, err := c.FinishRun(ctx, "r", wire.FinishRun{Outcome: "done"})
			return err
		}, "POST /v1/runs/r/finish", `{"outcome":"done"}`},
		{"end", func(ctx context.Context, c *client.Client) error {
			_, err := c.EndRun(ctx, "r", wire.EndRun{Reason: "x", Actor: "a"})
			return err
		}, "POST /v1/runs/r/end", `{"reason":"x","actor":"a"}`},
		{"list mutations", func(ctx context.Context, c *client.Client) error {
			_, err := c.Mutations(ctx, client.Filter{
				States: []string{"applied", "failed"}, Connector: "b", Operation: "o", Run: "r", Unresolved: true, Escalated: true,
				Item: "i", Since: "2026-03-01T12:00:00Z", Cursor: "c",
			})
			return err
		}, "GET /v1/mutations?connector=b&cursor=c&escalated=true&item=i&operation=o&run=r&since=2026-03-01T12%3A00%3A00Z&state=applied&state=failed&unresolved=true", ""},
		{"resolve", func(ctx context.Context, c *client.Client) error {
			_, err := c.Resolve(ctx, "m-1", wire.Resolve{Action: "happened", Reason: "r", Actor: "a", Version: 2, Result: &wire.Result{Status: 200, Body: wire.Text("x")}})
			return err
		}, "POST /v1/mutations/m-1/resolve", `{"action":"happened","reason":"r","actor":"a","version":2,"result":{"status":200,"body":"x"}}`},
		{"escalations", func(ctx context.Context, c *client.Client) error {
			_, err := c.Escalations(ctx, client.Filter{})
			return err
		}, "GET /v1/escalations", ""},
		{"items", func(ctx context.Context, c *client.Client) error {
			_, err := c.Items(ctx, client.Filter{States: []string{"open", "done"}})
			return err
		}, "GET /v1/items?state=open&state=done", ""},
		{"an item", func(ctx context.Context, c *client.Client) error { _, err := c.Item(ctx, "i-1"); return err }, "GET /v1/items/i-1", ""},
		{"status", func(ctx context.Context, c *client.Client) error { _, err := c.Status(ctx); return err }, "GET /v1/status", ""},
		{"environment", func(ctx context.Context, c *client.Client) error { _, err := c.Environment(ctx); return err }, "GET /v1/environment", ""},
		{"explain", func(ctx context.Context, c *client.Client) error {
			_, err := c.Explain(ctx, wire.Explain{Method: "GET", URL: "https://a"})
			return err
		}, "POST /v1/explain", `{"method":"GET","url":"https://a"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got, body string
			api := serve(t, func(w http.ResponseWriter, r *http.Request) {
				got = r.Method + " " + r.URL.RequestURI()
				if key := r.Header.Get("Idempotency-Key"); key != "" {
					got += " key=" + key
				}
				content, _ := io.ReadAll(r.Body)
				body = string(content)
				if auth := r.Header.Get("Authorization"); auth != "Bearer secret" {
					t.Errorf("Authorization %q", auth)
				}
				if media := r.Header.Get("Content-Type"); (media == "application/json") != (body != "") {
					t.Errorf("Content-Type %q of %q", media, body)
				}
				io.WriteString(w, `{"new_member_of_a_later_version":1}`)
			})
			if err := c.call(t.Context(), api); err != nil {
				t.Fatal(err)
			}
			if got != c.want || body != c.body {
				t.Errorf("sent %s %s\nwant %s %s", got, body, c.want, c.body)
			}
		})
	}
}

func TestRefusalsAreProblems(t *testing.T) {
	t.Parallel()
	api := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, `{"type":"urn:keep:problem:not-allowed","title":"Not allowed","status":409,"detail":"Decide otherwise.","actions":[{"action":"skip","consequence":"c"}]}`)
	})
	_, err := api.Resolve(t.Context(), "m", wire.Resolve{})
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || p.Status != 409 || p.Title != "Not allowed" || p.Error() != "Decide otherwise." || len(p.Actions) != 1 || p.Actions[0].Action != "skip" {
		t.Errorf("got %+v (%v)", p, err)
	}
	if !client.IsProblem(err, "not-allowed") || client.IsProblem(err, "version") || client.IsProblem(io.EOF, "not-allowed") {
		t.Error("IsProblem is wrong")
	}
}

func TestAnswersThatAreNotTheAPIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"another program's error page", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "nginx", http.StatusBadGateway) }, "status 502 with an answer that isn't its own"},
		{"a problem of nobody", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", wire.ProblemContentType)
			w.WriteHeader(http.StatusTeapot)
			io.WriteString(w, `{}`)
		}, "status 418 with an answer that isn't its own"},
		{"a redirect, which is not followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/v1/other", http.StatusTemporaryRedirect)
		}, "status 307"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `<html>`) }, "GET /v1/status"},
		{"half an answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"ledger_id":`)
		}, "answer cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := serve(t, c.answer).Status(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, ok := errors.AsType[*client.Problem](err); ok {
				t.Error("it is taken for the API's refusal")
			}
		})
	}
}

func TestCommandsAreSentOnce(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	accepted := make(chan int, 1)
	go func() {
		n := 0
		defer func() { accepted <- n }()
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			n++
			// Reads the request whole, then drops the connection.
			r := make([]byte, 64<<10)
			_, _ = conn.Read(r)
			conn.Close()
		}
	}()
	c, err := client.New(client.Config{URL: ln.Addr().String(), Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.OpenRun(t.Context(), wire.OpenRun{Workflow: "w", Once: true}, "key"); err == nil || !strings.Contains(err.Error(), "admin API") {
		t.Errorf("got %v", err)
	}
	ln.Close()
	if n := <-accepted; n != 1 {
		t.Errorf("sent %d times", n)
	}
}

// net/http repeats a request of its own accord over another connection when one that it had
// used before breaks, if it can read the content again and the request has an Idempotency-Key.
func TestACommandIsNotRepeatedOverAnotherConnection(t *testing.T) {
	t.Parallel()
	var commands atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, "{}")
			return
		}
		commands.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler) // The connection breaks without a byte of an answer.
	}))
	defer server.Close()
	c, err := client.New(client.Config{URL: server.URL, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.OpenRun(t.Context(), wire.OpenRun{Workflow: "w", Once: true}, "key"); err == nil {
		t.Error("no error without an answer")
	}
	if n := commands.Load(); n != 1 {
		t.Errorf("sent %d times, want once", n)
	}
}

// Who has to know whether a command was carried out can tell what never left from what may
// have arrived.
func TestWhatWasNotAskedIsToldFromWhatWasNotAnswered(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer secure.Close()
	for name, c := range map[string]struct {
		url     string
		unasked bool
	}{
		"nobody listens":                      {"unix:" + filepath.Join(t.TempDir(), "none.sock"), true},
		"a certificate that nobody knows":     {secure.URL, true},
		"a connection that breaks afterwards": {server.URL, false},
	} {
		api, err := client.New(client.Config{URL: c.url, Token: "t"})
		if err != nil {
			t.Fatal(err)
		}
		defer api.Close()
		if _, err := api.OpenRun(t.Context(), wire.OpenRun{Workflow: "w", Once: true}, "key"); err == nil || errors.Is(err, client.ErrNotAsked) != c.unasked {
			t.Errorf("%s: %v; is it ErrNotAsked? want %t", name, err, c.unasked)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"ledger_id":"`+r.Host+`"}`) }), ReadHeaderTimeout: time.Minute}
	go server.Serve(ln)
	defer server.Close()
	c, err := client.New(client.Config{URL: "unix:" + path})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := c.Status(t.Context()); err != nil || got.LedgerID != "localhost" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestVerifyLedgerWithoutAReport(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{"it ends early": "{\"done\":1}\n", "nothing": "", "no JSON": "x\n"} {
		api := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) })
		if report, err := api.VerifyLedger(t.Context(), nil); err == nil || report != nil {
			t.Errorf("%s: %+v is taken for a report", name, report)
		}
	}
}

func TestBackupThatIsCut(t *testing.T) {
	t.Parallel()
	api := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	var got bytes.Buffer
	if n, err := api.BackupLedger(t.Context(), &got); err == nil || n != 4 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestEventsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get("Last-Event-ID"); id != "7" {
			t.Errorf("Last-Event-ID %q", id)
		}
		io.WriteString(w, ":\n\nid: 8\nevent: run\ndata: {\"seq\":8}\n\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	err := api.Events(ctx, 7, func(e wire.Event) error {
		if e.Seq != 8 {
			t.Errorf("event %+v", e)
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

func TestContentErrors(t *testing.T) {
	t.Parallel()
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/body") {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", wire.ProblemContentType)
		w.WriteHeader(http.StatusGone)
		io.WriteString(w, `{"type":"urn:keep:problem:body-dropped","title":"Dropped","status":410,"detail":"Dropped."}`)
	})
	for _, name := range []string{"request", "result"} {
		if _, err := api.Body(t.Context(), "m-1", name); !client.IsProblem(err, "body-dropped") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
