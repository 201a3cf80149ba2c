package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"keep-proxy/config"
	"keep-proxy/internal/clock"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// awsRules are those of a connector of AWS.
func awsRules(t *testing.T, host, service string) *rules.Set {
	t.Helper()
	text := "apiVersion: keep/v1\nconnector: a\nversion: 1\nreads: []\nhosts: ['" + host + "']\naws: {service: " + service + "}\noperations:\n- {name: look, match: {method: GET, path: /x}, effect: read}\n"
	set, findings := rules.Load([]rules.File{{Name: "a.yaml", Data: []byte(text)}}, nil, rules.Defaults{})
	if set == nil {
		t.Fatal(findings)
	}
	return set
}

const (
	byKey     = "{sigv4: {access_key: AKID, secret_key: wJalr, session_token: temporary}, use: always}"
	emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// signedChunks are "hello" in one chunk, with a trailer.
const signedChunks = "5;chunk-signature=00\r\nhello\r\n0;chunk-signature=01\r\nx-amz-checksum-crc32:NhCmhg==\r\nx-amz-trailer-signature:02\r\n\r\n"

// verified is whether a request has the signature that the service would make of it.
func verified(t *testing.T, r *http.Request, service, region, hash string) bool {
	t.Helper()
	by := r.Header.Get("Authorization")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		t.Error(err)
	}
	_, list, _ := strings.Cut(by, "SignedHeaders=")
	list, _, _ = strings.Cut(list, ",")
	again := &http.Request{Method: r.Method, Host: r.Host, Header: http.Header{}}
	if again.URL, err = url.Parse("http://" + r.Host + r.RequestURI); err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(list, ";") {
		if name != "host" {
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	key := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "wJalr", SessionToken: "temporary"}
	if err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = service == "s3" }).
		SignHTTP(t.Context(), key, again, hash, service, region, at); err != nil {
		t.Fatal(err)
	}
	return again.Header.Get("Authorization") == by
}

func TestWhatHasAVoucherIsSigned(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		got, body = r, string(content)
	}))
	defer server.Close()
	target, _ := url.Parse(server.URL)
	fake := clock.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c := newCredentials(configured(t, byKey), awsRules(t, target.Host, "s3"), fake)
	sender := signing{upstream.New(upstream.Config{HTTP1: &upstream.HTTP1{}, Clock: clock.System()}), c}
	defer sender.CloseIdle()
	name, voucher, always, err := c.Always("a", "http", target.Host)
	if name != "Authorization" || !always || err != nil || strings.Contains(voucher, "wJalr") || strings.Contains(voucher, "AKID") {
		t.Fatalf("%s: %s, %v, %v", name, voucher, always, err)
	}
	sum := sha256.Sum256([]byte("hello"))
	for what, r := range map[string]struct {
		method, target, body, said, hash string
	}{
		"signed chunks": {"PUT", "/a", signedChunks, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", hex.EncodeToString(sum[:])},
		"chunks alone":  {"PUT", "/a", signedChunks, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", hex.EncodeToString(sum[:])},
		"content":       {"PUT", "/a%20b/c%2Bd?x-id=PutObject&b=c%2Fd", "hello", "stale", hex.EncodeToString(sum[:])},
		"none":          {"HEAD", "/a/b", "", "", emptyHash},
		"chunks":        {"PUT", "/a", "hello", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"},
	} {
		u, _ := url.Parse(server.URL + r.target)
		request := &upstream.Request{Method: r.method, URL: u, Host: u.Host, Header: http.Header{
			"Authorization": {voucher}, "X-Amz-Date": {"20200101T000000Z"}, "X-Amz-Security-Token": {"old"}, "X-Amz-Content-Sha256": {r.said},
			"User-Agent": {"mine"}, "Via": {"1.1 a"}, "X-Amz-Meta-Keep": {" a  b "}, "Content-Type": {"text/plain"}, "Amz-Sdk-Request": {"attempt=1"},
		}}
		if r.body != "" {
			request.Body = upstream.Bytes(r.body)
		}
		if r.body == signedChunks {
			r.body = "hello" // as it arrives
			request.Header["X-Amz-Decoded-Content-Length"] = []string{"5"}
			if what != "chunks alone" {
				request.Header["Content-Encoding"] = []string{"aws-chunked, zz"}
			}
		}
		answer := sender.Send(t.Context(), request)
		answer.Close()
		switch coding := got.Header.Get("Content-Encoding"); {
		case answer.Status != 200 || body != r.body || len(got.Header["Content-Encoding"]) > 0 && coding != "zz" || got.Header.Get("X-Amz-Decoded-Content-Length") != "" || got.Header.Get("User-Agent") != "mine" || got.Header.Get("X-Amz-Date") != "20260102T030405Z":
			t.Errorf("%s: %d %v", what, answer.Status, got)
		case !verified(t, got, "s3", "us-east-1", r.hash) || got.Header.Get("X-Amz-Security-Token") != "temporary":
			t.Errorf("%s: %v", what, got.Header)
		}
		if request.Header.Get("Authorization") != voucher {
			t.Errorf("%s: the caller's request was changed", what)
		}
		if !slices.Contains(answer.Secrets, "temporary") || !slices.Contains(answer.Secrets, "AKID") {
			t.Errorf("%s: %q may be kept of what was sent", what, answer.Secrets)
		}
	}
}

// Nothing goes out under a voucher that is known to nobody, or where it can't be signed.
func TestWhatCannotBeSignedIsNotSent(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("sent: %v", r.Header) }))
	defer server.Close()
	for what, change := range map[string]func(c *credentials, r *upstream.Request){
		"other settings": func(c *credentials, _ *upstream.Request) { c.use(configured(t, byKey), c.rules) },
		"no settings":    func(c *credentials, _ *upstream.Request) { c.use(config.Connectors{}, c.rules) },
		"another host":   func(_ *credentials, r *upstream.Request) { r.URL.Host = "b.test" },
		"no service":     func(c *credentials, _ *upstream.Request) { c.rules = coveringRules(t, "a.test") },
		"broken chunks": func(_ *credentials, r *upstream.Request) {
			r.Header.Set("X-Amz-Content-Sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
		},
		"a presigned URL":   func(_ *credentials, r *upstream.Request) { r.URL.RawQuery = "X-Amz-Signature=0" },
		"no secret":         func(c *credentials, _ *upstream.Request) { *c.byConnector["a"].SigV4 = config.SigV4{} },
		"a guessed voucher": func(_ *credentials, r *upstream.Request) { r.Header.Set("Authorization", newVoucher()) },
	} {
		c := newCredentials(configured(t, byKey), awsRules(t, "a.test", "sqs"), clock.System())
		sender := signing{upstream.New(upstream.Config{
			HTTP1: &upstream.HTTP1{}, Clock: clock.System(),
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
			},
		}), c}
		_, voucher, err := c.For("a", "http", "a.test")
		if err != nil {
			t.Fatal(err)
		}
		r := &upstream.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: "a.test", Path: "/"}, Header: http.Header{"Authorization": {voucher}}}
		change(c, r)
		answer := sender.Send(t.Context(), r)
		answer.Close()
		if ev := answer.Evidence(); answer.Status != 0 || !ev.NotSent || !strings.Contains(ev.Error, "signed") || strings.Contains(ev.Error, "wJalr") {
			t.Errorf("%s: %+v", what, ev)
		}
		sender.CloseIdle()
	}
}
