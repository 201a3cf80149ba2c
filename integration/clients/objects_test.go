package clients

import (
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
)

const secretKey = "an-example-secret"

var awscli = client{
	name: "awscli", trade: storing{},
	argv: []string{"env", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=" + secretKey, "AWS_DEFAULT_REGION=us-east-1",
		"AWS_EC2_METADATA_DISABLED=true", "/usr/bin/aws", "s3api"},
	needs:   []string{"/usr/bin/aws"},
	version: []string{"/usr/bin/aws", "--version"},
	note:    "it retries answers with 5xx by itself",
}

// storing is the trade of awscli: it lists a bucket and puts objects, signed with the
// time of day, so that no two requests are alike.
type storing struct{}

func (storing) read(_ *testing.T, w *world) errand {
	return errand{on: w.objects, args: []string{"list-objects-v2", "--bucket", "kept", "--endpoint-url", w.site(w.objects)}}
}

func (storing) change(_ *testing.T, w *world, word string) errand { return put(w, "kept", word) }

func (storing) halt(_ *testing.T, w *world, word string) errand { return put(w, "silent", word) }

func put(w *world, bucket, word string) errand {
	return errand{
		on: w.objects, counts: "object:" + bucket + "/a b/" + word, body: word,
		args: []string{"put-object", "--bucket", bucket, "--key", "a b/" + word, "--body", "/dev/stdin", "--metadata", "ref=" + word, "--endpoint-url", w.site(w.objects)},
	}
}

func (storing) content(d done, what string) bool {
	if what == "read" {
		return d.code == 0
	}
	return d.code == 0 && strings.Contains(d.text, "ETag")
}

func (storing) refused(d done) bool {
	return d.code != 0 && (strings.Contains(d.text, "(KeepProxyUnknownOutcome)") || strings.Contains(d.text, "(KeepProxyRunAborted)"))
}

// objects is an object store: GET and PUT /BUCKET/KEY, and GET /BUCKET, an empty list. A
// signature (AWS Signature Version 4) must be right where there is one; a write must have
// one. Identity in the log: object:BUCKET/KEY.
type objects struct {
	mu     sync.Mutex
	stored map[string]http.Header
}

func newObjects() *objects { return &objects{stored: map[string]http.Header{}} }

func (*objects) Name() string                 { return "objects" }
func (*objects) Restore([]oracle.Event) error { return nil }

func (*objects) Identity(r *server.Request) string {
	if r.Method == http.MethodPut {
		return "object:" + strings.TrimPrefix(r.Path, "/")
	}
	return ""
}

func (o *objects) Serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fields := o.stored[c.Path]
	switch signed := strings.HasPrefix(c.Header.Get("Authorization"), "AWS4"); { // keep-proxy itself signs nothing.
	case signed && !signatureFits(c.Request), !signed && c.Method != http.MethodGet:
		return xmlAnswer(http.StatusForbidden, "<Error><Code>SignatureDoesNotMatch</Code></Error>"), nil
	case c.Method == http.MethodPut:
		return o.put(ctx, c)
	case c.Method == http.MethodGet && c.Query.Has("list-type"):
		return xmlAnswer(http.StatusOK, "<ListBucketResult><Name>kept</Name><KeyCount>0</KeyCount></ListBucketResult>"), nil
	case c.Method == http.MethodGet && fields != nil:
		return &server.Answer{Status: http.StatusOK, Header: fields}, nil
	}
	return xmlAnswer(http.StatusNotFound, "<Error><Code>NoSuchKey</Code></Error>"), nil
}

func (o *objects) put(ctx context.Context, c *server.Call) (*server.Answer, error) {
	if err := c.Pause(ctx); err != nil || c.NoEffect {
		return c.Own, err
	}
	if err := c.Commit(o.Identity(c.Request), len(c.Body), nil); err != nil {
		return nil, err
	}
	sum := md5.Sum(c.Body)
	tag := http.Header{"Etag": {`"` + hex.EncodeToString(sum[:]) + `"`}}
	o.stored[c.Path] = tag.Clone()
	o.stored[c.Path].Set("X-Amz-Meta-Ref", c.Header.Get("X-Amz-Meta-Ref"))
	if c.Own != nil {
		return c.Own, nil
	}
	return &server.Answer{Status: http.StatusOK, Header: tag}, nil
}

func xmlAnswer(status int, body string) *server.Answer {
	return &server.Answer{Status: status, Header: http.Header{"Content-Type": {"application/xml"}}, Body: []byte(`<?xml version="1.0"?>` + body)}
}

// signatureFits computes the signature anew from what arrived.
func signatureFits(r *server.Request) bool {
	parts := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		parts[name] = value
	}
	_, scope, _ := strings.Cut(parts["Credential"], "/")
	names := strings.Split(parts["SignedHeaders"], ";")
	slices.Sort(names)
	var fields strings.Builder
	for _, name := range names {
		value := strings.TrimSpace(strings.Join(r.Header.Values(name), ","))
		if name == "host" {
			value = r.Host
		}
		fmt.Fprintf(&fields, "%s:%s\n", name, value)
	}
	path := (&url.URL{Path: r.Path}).EscapedPath()
	canonical := strings.Join([]string{r.Method, path, strings.ReplaceAll(r.Query.Encode(), "+", "%20"), fields.String(),
		strings.Join(names, ";"), r.Header.Get("X-Amz-Content-Sha256")}, "\n")
	digest := sha256.Sum256([]byte(canonical))
	key := []byte("AWS4" + secretKey)
	for step := range strings.SplitSeq(scope, "/") {
		key = keyed(key, step)
	}
	text := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + scope + "\n" + hex.EncodeToString(digest[:])
	return hmac.Equal([]byte(hex.EncodeToString(keyed(key, text))), []byte(parts["Signature"]))
}

func keyed(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
