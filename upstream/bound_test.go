package upstream

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// remembering is an upstream that takes whoever logged in on a connection for who asks on it from
// then on, as servers of NTLM do. It answers with that name.
func remembering(t *testing.T) *httptest.Server {
	t.Helper()
	var mu sync.Mutex
	users := map[string]string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if scheme, user, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && !strings.EqualFold(scheme, "Bearer") {
			users[r.RemoteAddr] = user
		}
		_, _ = io.WriteString(w, users[r.RemoteAddr])
	}))
	t.Cleanup(srv.Close)
	return srv
}

// A connection on which a client logged in for all that follows is no other's: what comes next there
// is taken for its own.
func TestAConnectionThatSomebodyLoggedInOnIsNoOthers(t *testing.T) {
	t.Parallel()
	asking := func(client any) context.Context {
		if client == nil {
			return context.Background()
		}
		return context.WithValue(context.Background(), ClientKey{}, client)
	}
	for way, start := range map[string]func(*testing.T, *httptest.Server) func(client any, authorization string) string{
		"reads": func(t *testing.T, srv *httptest.Server) func(any, string) string {
			t.Helper()
			p := passer(t, Config{})
			return func(client any, authorization string) string {
				r := get(t, mustURL(t, srv.URL)).WithContext(asking(client))
				if authorization != "" {
					r.Header.Set("Authorization", authorization)
				}
				resp, err := p.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = resp.Body.Close() }()
				user, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				return string(user)
			}
		},
		"mutations": func(t *testing.T, srv *httptest.Server) func(any, string) string {
			t.Helper()
			s := sender(t, Config{FreshFor: time.Hour})
			return func(client any, authorization string) string {
				r := post(mustURL(t, srv.URL), "x")
				if authorization != "" {
					r.Header = http.Header{"Authorization": {authorization}}
				}
				a := s.Send(asking(client), r)
				defer a.Close()
				user, err := io.ReadAll(a.Body)
				if err != nil {
					t.Fatal(err)
				}
				return string(user)
			}
		},
	} {
		for _, scheme := range []string{"NTLM", "negotiate"} {
			t.Run(way+", "+scheme, func(t *testing.T) {
				t.Parallel()
				ask := start(t, remembering(t))
				alice, bob := new(byte), new(byte)
				for i, one := range []struct {
					client        any
					authorization string
					want          string
				}{
					{bob, "", ""},
					{alice, scheme + " alice", "alice"},
					{bob, "", ""},
					{alice, "", "alice"},
					{bob, "Bearer x", ""},
					{bob, scheme + " bob", "bob"},
					{alice, "", "alice"},
					{bob, "", "bob"},
					{nil, "", ""},
					{nil, scheme + " nobody", "nobody"},
					{nil, "", ""},
					{new(byte), "", ""},
				} {
					if got := ask(one.client, one.authorization); got != one.want {
						t.Errorf("request %d is taken for one of %q, want %q", i, got, one.want)
					}
				}
			})
		}
	}
}

// Where connections can't be looked at, one that somebody logged in on isn't used again.
func TestAConnectionThatSomebodyLoggedInOnEndsWhereItCannotBeLookedAt(t *testing.T) {
	t.Parallel()
	srv := remembering(t)
	p := passer(t, Config{Dial: opaqueDial})
	for i, authorization := range []string{"NTLM alice", "", "", "NTLM bob", ""} {
		r := get(t, mustURL(t, srv.URL))
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		_, want, _ := strings.Cut(authorization, " ")
		if _, user, _, err := readAll(p, r); err != nil || user != want {
			t.Errorf("request %d is taken for one of %q, %v, want %q", i, user, err, want)
		}
	}
}

// Those of clients that have gone, and that nobody has any more, aren't kept without an end.
func TestConnectionsThatSomebodyLoggedInOnAreFew(t *testing.T) {
	t.Parallel()
	srv := remembering(t)
	p := passer(t, Config{})
	last := new(byte)
	ask := func(client any, authorization string) string {
		r := get(t, mustURL(t, srv.URL))
		if client != nil {
			r = r.WithContext(context.WithValue(r.Context(), ClientKey{}, client))
		}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		_, user, _, err := readAll(p, r)
		if err != nil {
			t.Fatal(err)
		}
		return user
	}
	for range mostBound + 8 {
		ask(new(byte), "NTLM gone")
		ask(nil, "NTLM gone")
	}
	ask(last, "NTLM last")
	if user := ask(last, ""); user != "last" {
		t.Errorf("the last one is taken for %q", user)
	}
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	idle := 0
	for _, conns := range p.pool.idle {
		idle += len(conns)
	}
	if idle != mostBound {
		t.Errorf("%d connections are idle, want %d", idle, mostBound)
	}
}
