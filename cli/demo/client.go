package demo

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// tries is how often the script sends a request that has no good answer.
const tries = 3

// clientTimeout bounds one request of the script.
const clientTimeout = time.Minute

// Client is pay.sh for machines without sh or curl: it does and prints the same.
// getenv is as os.Getenv.
func Client(ctx context.Context, getenv func(string) string, out io.Writer) error {
	client, err := NewClient(getenv)
	if err != nil {
		return err
	}
	answer, err := ask(ctx, client, http.MethodGet, getenv("DEMO_QUOTES")+"/quote/ACME", "")
	_, _ = fmt.Fprintf(out, "quote:  %s\n", oneLine(answer, err))
	if notice := getenv("DEMO_NOTICE"); notice != "" {
		if err := send(ctx, client, out, getenv("DEMO_BANK")+"/notices", notice); err != nil {
			return err
		}
	}
	return send(ctx, client, out, getenv("DEMO_BANK")+"/transfers", getenv("DEMO_TRANSFER"))
}

// NewClient goes through the proxy of the environment, also to loopback addresses. Go's own reading of the
// environment leaves those out.
func NewClient(getenv func(string) string) (*http.Client, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	if address := getenv("HTTPS_PROXY"); address != "" {
		proxy, err := url.Parse(address)
		if err != nil {
			return nil, fmt.Errorf("HTTPS_PROXY: %w", err)
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	pem, err := os.ReadFile(getenv("SSL_CERT_FILE"))
	if err != nil {
		return nil, fmt.Errorf("SSL_CERT_FILE: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: transport, Timeout: clientTimeout}, nil
}

func send(ctx context.Context, client *http.Client, out io.Writer, address, body string) error {
	for try := range tries {
		answer, err := ask(ctx, client, http.MethodPost, address, body)
		if err == nil {
			_, _ = fmt.Fprintf(out, "answer: %s\n", oneLine(answer, nil))
			return nil
		}
		_, _ = fmt.Fprintf(out, "no good answer (try %d): %s\n", try+1, oneLine(answer, err))
	}
	return errors.New("no good answer")
}

func ask(ctx context.Context, client *http.Client, method, address, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.GetBody = nil // The transport doesn't try again by itself.
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && answer.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("status %d", answer.StatusCode)
	}
	return string(content), err
}

func oneLine(answer string, err error) string {
	if err != nil {
		answer = strings.TrimSpace(err.Error() + " " + answer)
	}
	return strings.Join(strings.Fields(answer), " ")
}
