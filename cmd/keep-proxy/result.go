package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/cli/managed"
	"keep-proxy/ledger"
)

// clearResult removes the result of an earlier run. If this run is killed, that must not pass for its result. Where
// no file can be written no run is opened: its end could not be told.
func (f *runFlags) clearResult() error {
	if f.result == "" || stream(f.result) {
		return nil
	}
	if target, err := filepath.EvalSymlinks(f.result); err == nil {
		f.result = target // The link leads nowhere once the file is gone.
	}
	if err := removeResult(f.result); err != nil {
		return noRun(fmt.Errorf("--result: %w; nothing was started: name a file that can be written", err))
	}
	return nil
}

func removeResult(name string) error {
	try, err := os.CreateTemp(filepath.Dir(name), tempName(name))
	if err == nil {
		err = errors.Join(try.Close(), os.Remove(try.Name()))
	}
	if err != nil {
		return err
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder", name)
	}
	if err = os.Remove(name); errors.Is(err, syscall.EBUSY) {
		err = os.Truncate(name, 0) // It is mounted by itself.
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

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

// reported is what a run that met err is reported as. What became of an opened run counts for more than an error
// after its end. With an error nothing is a success.
func reported(cmd *cobra.Command, v managed.Verdict, err error) (managed.Verdict, error) {
	switch {
	case err == nil:
		return v, nil
	case v.Run != "" && v.Code != codeOK:
		return v, &exitError{code: v.Code, err: err}
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

// unasked reports whether an error says nothing about the work. The proxy could not be asked, the ledger is another
// process's, or somebody ended us before.
func unasked(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok || errors.Is(err, managed.ErrOpenLost) || errors.Is(err, ledger.ErrLocked) || errors.Is(err, errSignalled)
}

// stream reports whether a name is no file of its own that could be replaced. It is a pipe, a terminal, /dev/null, or
// one of our own streams, wherever it leads.
func stream(name string) bool {
	if dir := filepath.Dir(filepath.Clean(name)); dir == "/dev" || dir == "/dev/fd" || dir == "/proc/self/fd" {
		return true
	}
	info, err := os.Stat(name)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// replaceFile writes a file that only its owner reads, whole or not at all. What can't be replaced, a pipe or a file
// that is mounted by itself, is written to.
func replaceFile(name string, content []byte) error {
	if stream(name) {
		return writeInto(name, os.O_APPEND, content)
	}
	err := wholeFile(name, func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
	if errors.Is(err, syscall.EBUSY) {
		return writeInto(name, os.O_TRUNC, content)
	}
	return err
}

// wholeFile writes a file that only its owner reads, whole or not at all.
func wholeFile(name string, fill func(*os.File) error) error {
	t, err := os.CreateTemp(filepath.Dir(name), tempName(name))
	if err != nil {
		return err
	}
	err = errors.Join(fill(t), t.Close())
	if err == nil {
		err = os.Rename(t.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(t.Name()))
	}
	return nil
}

func tempName(name string) string { return "." + filepath.Base(name) + "-*" }

// writeInto writes to what is there. A pipe that nobody reads is an error, and isn't waited for.
func writeInto(name string, how int, content []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK|how, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// tell says in a sentence why the run did not end with its command. With itemDone the run might only read.
func tell(say func(string, ...any), v managed.Verdict, itemDone bool) {
	switch v.Code {
	case managed.CodeUnknown:
		say("stopped: %s", v.Reason)
		switch {
		case v.Mutation == "" && !managed.Ended(v.State):
			say("see keep-proxy runs show %s; run the same command again once keep-proxy status is clean, with --takeover if this run still goes on", v.Run)
		case v.Mutation != "" && v.State == "aborted":
			// What it met may be settled since, or was never unknown: its stored result could not be verified.
			say("see keep-proxy mutations show %s; run the same command again later, once keep-proxy status is clean", v.Mutation)
		case v.Mutation != "":
			say("see keep-proxy mutations show %s; run the same command again once it is resolved, by the API or by keep-proxy resolve", v.Mutation)
		}
	case managed.CodeAttention:
		say("the item needs attention: %s", v.Reason)
		if v.Mutation == "" {
			say("see keep-proxy status and keep-proxy resolve")
			return
		}
		say("see keep-proxy mutations show %s; decide with keep-proxy resolve %s", v.Mutation, v.Mutation)
	case managed.CodeAborted:
		say("aborted (%s): %s", v.Class, v.Reason)
		say("%s", abortAdvice(v, itemDone))
	}
}

// mostTold is how many refused requests are told of.
const mostTold = 20

// hearRefused says at once what another process' proxy refuses the run, until heard is called. Our own proxy's log says it.
// A proxy that can't be followed is no reason to stop: what counts is told at the end.
func hearRefused(ctx context.Context, c *client.Client, run string, say func(string, ...any)) (heard func()) {
	ctx, cancel := context.WithCancel(ctx)
	begun, ended, times := make(chan struct{}), make(chan struct{}), 0
	begin := sync.OnceFunc(func() { close(begun) })
	go func() {
		defer close(ended)
		defer begin()
		_ = c.Requests(ctx, map[string]string{"run": run, "problem": "any"}, begin, func(q wire.Served) error {
			if times++; times > mostTold {
				say("more requests are refused; see the proxy's log, or keep-proxy tail")
				return io.EOF
			}
			say("refused (%s): %s", q.Problem, q.Method+" "+q.Host+q.Path)
			return nil
		})
	}()
	<-begun
	return func() { cancel(); <-ended }
}

// tellRefused says why each request was refused, and which flags accept that.
func tellRefused(say func(string, ...any), refused []wire.Refused) {
	var flags []string
	for i, f := range refused {
		if i == mostTold {
			say("%d more requests were refused; see keep-proxy runs show", len(refused)-i)
			break
		}
		say("refused (%s): %s", f.Code, printable(cmp.Or(strings.TrimSpace(f.Method+" "+f.Host+f.Path), "a request")+": "+f.Detail))
		if flag := printable("--tolerate " + f.Code + ":" + f.Host); f.Class != "transient" && f.Host != "" && !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	if len(flags) > 0 {
		say("to accept that: %s", strings.Join(flags, " "))
	}
}

// abortAdvice says what to do after a run that was aborted.
func abortAdvice(v managed.Verdict, itemDone bool) string {
	what := "mend the cause, and run the same command again; what the proxy sent is replayed, and what went past it is sent again"
	switch {
	case itemDone:
		what = "a run of an item that is done may only read; keep-proxy items reopen or keep-proxy items new-attempt allows more"
	case v.Retry == managed.RetryYes:
		what = "it may pass by itself: run the same command again later; what the proxy sent is replayed"
	}
	if v.Mutation != "" {
		what = "see keep-proxy mutations show " + v.Mutation + "; " + what
	}
	return what
}
