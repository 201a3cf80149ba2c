package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"keep-proxy/internal/fakes/sockets"
)

func gives(text string) func() (string, error) { return func() (string, error) { return text, nil } }

var theMoment = time.Unix(1614265330, 0)

func TestAWebhookIsSigned(t *testing.T) {
	t.Parallel()
	var head http.Header
	var body string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		head, body = r.Header, string(content)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(s.Close)
	key := []byte("of 24 bytes, at the least")
	hook := NewWebhook("ops", gives(s.URL+"/hook"), gives("whsec_"+base64.StdEncoding.EncodeToString(key)), nil, func() time.Time { return theMoment })
	if err := hook.Deliver(t.Context(), Message{ID: "msg"}, []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, `msg.1614265330.{"a":1}`)
	for name, value := range map[string]string{
		"Webhook-Id": "msg", "Webhook-Timestamp": "1614265330", "Content-Type": "application/json",
		"Webhook-Signature": "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	} {
		if head.Get(name) != value {
			t.Errorf("%s: %q, want %q", name, head.Get(name), value)
		}
	}
	if body != `{"a":1}` {
		t.Errorf("body %q", body)
	}
}

// TestTheSignatureIsThatOfTheStandard uses the example of the specification.
func TestTheSignatureIsThatOfTheStandard(t *testing.T) {
	t.Parallel()
	hook := NewWebhook("ops", nil, gives("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), nil, func() time.Time { return theMoment })
	h := http.Header{}
	if err := hook.sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", []byte(`{"test": 2432232314}`)); err != nil {
		t.Fatal(err)
	}
	if got := h.Get("Webhook-Signature"); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("signature %s", got)
	}
}

func TestAWebhookThatFailsTellsNoSecret(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(s.Close)
	for _, c := range []struct {
		name     string
		url, key func() (string, error)
		want     string
	}{
		{"a redirect", gives(s.URL + "/s3cret"), nil, "answered 307"},
		{"nobody there", gives("http://" + sockets.Deaf(t) + "/s3cret"), nil, "connect"},
		{"no url", gives("ftp://host/s3cret"), nil, "its url is none"},
		{"an url that is none", gives("http://host:s3cret/"), nil, "its url is none"},
		{"a source that is gone", func() (string, error) { return "", errors.New("file /x is missing") }, nil, "its url: file /x is missing"},
		{"a key that is none", gives(s.URL), gives("whsec_s3cret!"), "its signing key is not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hook := NewWebhook("ops", c.url, c.key, nil, time.Now)
			err := hook.Deliver(t.Context(), Message{ID: "m"}, []byte("{}"))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v, want %s and no secret", err, c.want)
			}
		})
	}
}

// A connection of HTTP/2 is used on when a request on it has got no answer. One that a router
// between has dropped in silence would swallow each try for many minutes.
func TestAfterATryInVainAWebhookIsCalledOnANewConnection(t *testing.T) {
	t.Parallel()
	var calls, connections atomic.Int32
	ctx, giveUp := context.WithCancel(t.Context())
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("it speaks %s", r.Proto)
		}
		if calls.Add(1) == 1 {
			giveUp()
			<-r.Context().Done()
		}
	}))
	s.EnableHTTP2 = true
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	hook := NewWebhook("ops", gives(s.URL), nil, &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}, time.Now)
	if err := hook.Deliver(ctx, Message{ID: "m"}, []byte("{}")); !errors.Is(err, context.Canceled) {
		t.Fatalf("without an answer: %v", err)
	}
	if err := hook.Deliver(t.Context(), Message{ID: "m"}, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

func TestACommandGetsTheMessage(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no sh here")
	}
	file := filepath.Join(t.TempDir(), "got")
	take := NewExec("pager", []string{"/bin/sh", "-c", `cat > "$0"; echo "$KEEP_NOTIFY_TYPE $KEEP_NOTIFY_MUTATION" >> "$0"`, file})
	if err := take.Deliver(t.Context(), Message{ID: "m", Type: TypeOpened, Data: Data{Mutation: "m-1"}}, []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != "{\"a\":1}\nescalation.opened m-1\n" {
		t.Errorf("it got %q, %v", got, err)
	}
	// A process of its own holds its output.
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	leave := NewExec("pager", []string{"/bin/sh", "-c", `read x < "$0" & exit 0`, pipe})
	if err := leave.Deliver(t.Context(), Message{ID: "m"}, nil); err != nil {
		t.Fatalf("an exit code of 0 counts as not delivered: %v", err)
	}
	if err := os.WriteFile(pipe, []byte("x\n"), 0o600); err != nil {
		t.Error(err)
	}
	refuse := NewExec("pager", []string{"/bin/sh", "-c", "exit 3"})
	if err := refuse.Deliver(t.Context(), Message{ID: "m"}, nil); err == nil {
		t.Error("an exit code of 3 counts as delivered")
	}
}
