package app_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/app"
	"keep-proxy/config"
)

// operatorOf is a client with the operator's own token.
func operatorOf(t *testing.T, a *app.App) *client.Client {
	t.Helper()
	c, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func plain(t *testing.T) config.Config {
	t.Helper()
	dir := t.TempDir()
	c := settings(t, dir, "127.0.0.1:1", filepath.Join(dir, "roots.pem"))
	c.Proxy.UpstreamCA = ""
	return c
}

func TestAPauseOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	c := plain(t)
	first := start(t, c)
	api := operatorOf(t, first)
	why := wire.SetMode{Reason: "the bank is down", Actor: "ann"}
	if m, err := api.Pause(t.Context(), why); err != nil || m.Mode != wire.ModePaused || m.Actor != "ann" || m.Reason != why.Reason || m.Since.IsZero() {
		t.Fatalf("pause: %+v %v", m, err)
	}
	if _, err := api.OpenRun(t.Context(), wire.OpenRun{Workflow: "w", Item: "i"}, ""); !client.IsProblem(err, "draining") || !strings.Contains(err.Error(), why.Reason) {
		t.Errorf("a run is opened while paused: %v", err)
	}
	if err := api.Readyz(t.Context()); !client.IsProblem(err, "not-ready") {
		t.Errorf("ready while paused: %v", err)
	}
	if err := api.Healthz(t.Context()); err != nil {
		t.Errorf("alive while paused: %v", err)
	}
	stop(t, first)

	var said []string
	second, err := app.New(t.Context(), app.Options{Config: c, Log: zerolog.Nop(), Note: func(text string) { said = append(said, text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, second) })
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(said, "\n"), "the bank is down; no mutation is sent until keep-proxy resume") {
		t.Errorf("at its start it says %q", said)
	}
	api = operatorOf(t, second)
	if st, err := api.Status(t.Context()); err != nil || st.Mode == nil || st.Mode.Mode != wire.ModePaused || st.Mode.Reason != why.Reason {
		t.Errorf("after a restart: %+v %v", st, err)
	}
	if m, err := api.Resume(t.Context(), wire.SetMode{Reason: "it is back", Actor: "ann"}); err != nil || m.Mode != wire.ModeServing || !m.Since.IsZero() {
		t.Errorf("resume: %+v %v", m, err)
	}
	if _, err := api.OpenRun(t.Context(), wire.OpenRun{Workflow: "w", Item: "i"}, ""); err != nil {
		t.Errorf("after it: %v", err)
	}
	if _, err := os.Stat(filepath.Join(c.Ledger.Dir, "paused.json")); !os.IsNotExist(err) {
		t.Errorf("the file of the pause: %v", err)
	}
}

func TestDrainingEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	c := plain(t)
	first := start(t, c)
	if m, err := operatorOf(t, first).Drain(t.Context(), wire.SetMode{Reason: "a new version", Actor: "ann"}); err != nil || m.Mode != wire.ModeDraining || m.Requests+m.Mutations+m.Tries != 0 {
		t.Fatalf("drain: %+v %v", m, err)
	}
	stop(t, first)
	if st, err := operatorOf(t, start(t, c)).Status(t.Context()); err != nil || st.Mode.Mode != wire.ModeServing {
		t.Errorf("after a restart: %+v %v", st, err)
	}
}

// What can't be read was written by somebody who wanted work to stand still.
func TestAPauseThatCannotBeReadIsAPause(t *testing.T) {
	t.Parallel()
	c := plain(t)
	if err := os.MkdirAll(c.Ledger.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Ledger.Dir, "paused.json"), []byte(`{"mode":`), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := operatorOf(t, start(t, c)).Status(t.Context())
	if err != nil || st.Mode.Mode != wire.ModePaused || !strings.Contains(st.Mode.Reason, "can't be read") {
		t.Errorf("%+v %v", st.Mode, err)
	}
}

// actorOf waits until the history has an event, and says by whom it is.
func actorOf(t *testing.T, api *client.Client, what string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	found := errors.New("found")
	actor := ""
	err := api.Events(ctx, 0, func(e wire.Event) error {
		if e.What != what {
			return nil
		}
		actor = e.Actor
		return found
	})
	if !errors.Is(err, found) {
		t.Fatalf("%s isn't in the history: %v", what, err)
	}
	return actor
}

// A name that somebody gives isn't taken for one of the program's own.
func TestAModeIsAPersonsInTheHistory(t *testing.T) {
	t.Parallel()
	api := operatorOf(t, start(t, plain(t)))
	q := wire.SetMode{Reason: "the bank is down", Actor: "runner"}
	for what, set := range map[string]func(context.Context, wire.SetMode) (*wire.Mode, error){
		wire.ModePaused: api.Pause, wire.ModeDraining: api.Drain, wire.ModeServing: api.Resume,
	} {
		if m, err := set(t.Context(), q); err != nil || m.Actor != "" && m.Actor != q.Actor {
			t.Fatalf("%s: %+v, %v", what, m, err)
		}
		if got := actorOf(t, api, what); got != "person:runner" {
			t.Errorf("%s is by %q", what, got)
		}
	}
}

func TestModesWantAReason(t *testing.T) {
	t.Parallel()
	api := operatorOf(t, start(t, plain(t)))
	if _, err := api.Pause(t.Context(), wire.SetMode{Actor: "ann"}); !client.IsProblem(err, "bad-request") {
		t.Errorf("without a reason: %v", err)
	}
	if st, err := api.Status(t.Context()); err != nil || st.Mode.Mode != wire.ModeServing {
		t.Errorf("afterwards: %+v %v", st, err)
	}
}
