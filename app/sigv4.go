package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"keep-proxy/dispatch"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// A key that signs requests stands for a header field like any other credential, with a value that nobody else knows: a
// voucher. The sender signs what has one, immediately before it is sent. A request whose voucher isn't known any more is
// not sent.

// newVoucher begins as a signature does, so that it counts as one.
func newVoucher() string { return dispatch.SigV4 + rand.Text() }

// signing sends requests, and signs those with a voucher.
type signing struct {
	*upstream.Sender
	credentials *credentials
}

// Send implements dispatch.Sender.
func (s signing) Send(ctx context.Context, r *upstream.Request) *upstream.Answer {
	voucher := r.Header.Get("Authorization")
	if !s.credentials.vouched(voucher) {
		return s.Sender.Send(ctx, r)
	}
	signed := *r
	signed.Header = maps.Clone(r.Header)
	key, err := s.credentials.sign(ctx, voucher, &signed)
	if err != nil {
		signed.Check = func() error { return fmt.Errorf("it can't be signed: %w", err) }
	}
	answer := s.Sender.Send(ctx, &signed)
	answer.Secrets = []string{key.AccessKeyID, key.SessionToken} // S3 names them when they are old or wrong.
	return answer
}

// vouched reports whether it has the form of a voucher, which no signature has.
func (*credentials) vouched(value string) bool {
	rest, ok := strings.CutPrefix(value, dispatch.SigV4)
	return ok && len(rest) == len(rand.Text()) && !strings.ContainsAny(rest, "=, ")
}

// sign gives the request the signature that its voucher stands for, and returns the key.
func (c *credentials) sign(ctx context.Context, voucher string, r *upstream.Request) (key aws.Credentials, err error) {
	c.mu.RLock()
	set, connector := c.rules, c.vouchers[voucher]
	c.mu.RUnlock()
	configured, _, covered := c.of(connector, r.URL.Scheme, r.URL.Host)
	if connector == "" || configured == nil || configured.SigV4 == nil || !covered {
		return key, errors.New("its credentials were changed meanwhile")
	}
	service, region := set.Signing(connector, r.URL.Scheme, r.URL.Host)
	if service == "" {
		return key, errors.New("the connector " + connector + " names no service: add aws: {service: …} to its file")
	}
	for name, s := range configured.Secrets() {
		text, err := s.Resolve(c.sources)
		if err != nil {
			return key, fmt.Errorf("connectors.settings: credentials of %s: %s: %w", connector, name, err)
		}
		*map[string]*string{
			"sigv4.access_key": &key.AccessKeyID, "sigv4.secret_key": &key.SecretAccessKey, "sigv4.session_token": &key.SessionToken,
		}[name] = text
	}
	for _, one := range []string{region, configured.SigV4.Region, "us-east-1"} {
		if region == "" {
			region = one
		}
	}
	return key, sigV4(ctx, r, key, service, region, c)
}

// sigV4 signs a request. Fields that only say how it is sent are not signed.
func sigV4(ctx context.Context, r *upstream.Request, key aws.Credentials, service, region string, c *credentials) error {
	if strings.Contains(strings.ToLower(r.URL.RawQuery), "x-amz-signature=") {
		return errors.New("its URL holds a signature already")
	}
	hash, err := payloadHash(r)
	if err != nil {
		return err
	}
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"} {
		r.Header.Del(name)
	}
	r.Header.Set("X-Amz-Content-Sha256", hash)
	signed := http.Header{}
	for name, values := range r.Header {
		if strings.HasPrefix(name, "X-Amz-") || name == "Content-Type" || name == "Content-Md5" {
			signed[name] = slices.Clone(values)
		}
	}
	target := *r.URL
	request := &http.Request{Method: r.Method, URL: &target, Host: r.Host, Header: signed}
	if err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = service == "s3" }).
		SignHTTP(ctx, key, request, hash, service, region, c.clock.Now()); err != nil {
		return fmt.Errorf("SigV4: %w", err)
	}
	maps.Copy(r.Header, request.Header)
	r.URL = &url.URL{Scheme: target.Scheme, Host: target.Host, Path: target.Path, RawPath: target.RawPath, RawQuery: target.RawQuery}
	return nil
}

// payloadHash is what the signature says of the content. Chunks that aren't signed themselves are sent as they came.
func payloadHash(r *upstream.Request) (string, error) {
	said, sum, chunks := r.Header.Get("X-Amz-Content-Sha256"), sha256.New(), bytes.Buffer{}
	if said == "STREAMING-UNSIGNED-PAYLOAD-TRAILER" {
		return said, nil
	}
	to, chunked := io.Writer(sum), strings.HasPrefix(said, "STREAMING-")
	if chunked {
		to = &chunks
	}
	if r.Body != nil {
		content, err := r.Body.Open()
		if err != nil {
			return "", fmt.Errorf("its content: %w", err)
		}
		_, err = io.Copy(to, content)
		if err = errors.Join(err, content.Close()); err != nil {
			return "", fmt.Errorf("its content: %w", err)
		}
	}
	if chunked {
		content, err := rules.Unchunked(r.Header, chunks.Bytes())
		if err != nil {
			return "", fmt.Errorf("its content: %w", err)
		}
		plain(r, content)
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// plain takes signed chunks away, and the fields that are about them. Their signatures are not for another key.
func plain(r *upstream.Request, content []byte) {
	r.Body = upstream.Bytes(content)
	codings := strings.Split(strings.ReplaceAll(strings.Join(r.Header["Content-Encoding"], ","), " ", ""), ",")
	codings = slices.DeleteFunc(codings, func(name string) bool { return strings.EqualFold(name, "aws-chunked") })
	for _, name := range []string{"Content-Encoding", "X-Amz-Decoded-Content-Length", "X-Amz-Trailer", "X-Amz-Sdk-Checksum-Algorithm"} {
		r.Header.Del(name)
	}
	if others := strings.Join(codings, ","); others != "" {
		r.Header.Set("Content-Encoding", others)
	}
}
