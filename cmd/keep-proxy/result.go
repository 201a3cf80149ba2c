package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/cli/managed"
	"keep-proxy/ledger"
)

// writeResult writes the file of --result, whole or not at all.
func (f *runFlags) writeResult(v managed.Verdict) error {
	if f.result == "" {
		return nil
	}
	var content bytes.Buffer
	if err := writeJSON(&content, v); err != nil {
		return err
	}
	if err := replaceFile(f.result, content.Bytes()); err != nil {
		return fmt.Errorf("--result: %w", err)
	}
	return nil
}

// itemDone is the refusal of an item that is done or skipped, nil for any other error.
func itemDone(err error) *client.Problem {
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Name() == "item-done" {
		return p
	}
	return nil
}

// reported is what a run that met err is reported as. What became of a run that was opened
// counts for more than what went wrong after its end, as in its proxy's; but with an error
// nothing is a success.
func reported(cmd *cobra.Command, v managed.Verdict, err error) (managed.Verdict, error) {
	switch {
	case err == nil:
		return v, nil
	case v.Run != "" && v.Code != codeOK:
		return v, &exitError{v.Code, err}
	}
	return refusedVerdict(cmd, err), err
}

// refusedVerdict is what becomes of a run that was not opened, or whose command could
// not be started.
func refusedVerdict(cmd *cobra.Command, err error) managed.Verdict {
	v := managed.Verdict{Code: exitCode(err), Class: "logic", Reason: said(cmd, err), Retry: managed.RetryNo}
	p, ok := errors.AsType[*client.Problem](err)
	if !ok {
		if unasked(err) {
			v.Class, v.Retry = "transient", managed.RetryYes
		}
		return v
	}
	switch p.Name() {
	case "blocked":
		v.Class, v.Retry = "indeterminate", managed.RetryYes
	case "item-busy", "draining", "ledger-unavailable", "not-ready":
		v.Class, v.Retry = "transient", managed.RetryYes
	}
	if p.Mutation != nil {
		v.Mutation = p.Mutation.ID
	}
	return v
}

// unasked reports whether an error says that the proxy could not be asked, or that the
// ledger is another process's: neither says anything about the work.
func unasked(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok || errors.Is(err, managed.ErrOpenLost) || errors.Is(err, ledger.ErrLocked)
}

// replaceFile writes a file that only its owner reads, whole or not at all.
func replaceFile(name string, content []byte) error {
	t, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, err = t.Write(content)
	err = errors.Join(err, t.Close())
	if err == nil {
		err = os.Rename(t.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(t.Name()))
	}
	return nil
}
