package clients

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

// goClient is Go's own client, unmodified; direct is one that knows no proxy.
func goClient(method, target string, direct bool) int {
	client := http.DefaultClient //nolint:forbidigo // As scripts do.
	if direct {
		client = &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true}}
	}
	r, err := http.NewRequest(method, target, os.Stdin)
	if err == nil {
		r.Header.Set("Content-Type", "application/json")
		err = show(client.Do(r))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func show(a *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }()
	fmt.Fprintln(os.Stdout, "STATUS", a.StatusCode)
	_ = a.Header.Write(os.Stdout)
	_, err = io.Copy(os.Stdout, a.Body)
	return err
}
