package clients

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

// goClient is Go's own client, unmodified.
func goClient(method, target string) int {
	r, err := http.NewRequest(method, target, os.Stdin)
	if err == nil {
		r.Header.Set("Content-Type", "application/json")
		err = show(http.DefaultClient.Do(r)) //nolint:forbidigo // As scripts do.
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
