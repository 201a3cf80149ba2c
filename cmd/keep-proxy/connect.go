package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"keep-proxy/admin/client"
	"keep-proxy/app"
	"keep-proxy/cli/serving"
	"keep-proxy/config"
)

// Variables by which the command line finds an API that isn't its data folder's.
const (
	adminVariable = "KEEP_ADMIN_URL"
	tokenVariable = "KEEP_ADMIN_TOKEN_FILE"
	rootsVariable = "KEEP_ADMIN_CA_FILE"
)

// stopTimeout bounds the orderly end of a program that has nothing in flight.
const stopTimeout = 30 * time.Second

// adminFlags are the flags by which a command finds the admin API.
type adminFlags struct {
	settings

	url string
}

func (a *adminFlags) bind(cmd *cobra.Command) {
	a.settings.bind(cmd)
	cmd.Flags().StringVar(&a.url, "admin", "", "admin API of a running proxy (default $"+adminVariable+", else the data folder's)")
}

// explicit is the address that a flag or a variable names; empty for neither.
func (a *adminFlags) explicit() string {
	if a.url != "" {
		return a.url
	}
	return os.Getenv(adminVariable)
}

// connection is an admin API to ask. Close it.
type connection struct {
	*client.Client

	config config.Config
	// state is what the data folder's proxy says of itself; nil for any other.
	state *serving.State
	// release ends what was opened for the connection; nil for nothing.
	release func() error
}

// connect finds the API: a named one, that of the data folder's proxy, or one of
// its own on the stopped ledger.
func (a *adminFlags) connect(cmd *cobra.Command) (*connection, error) {
	c, err := a.load(cmd)
	if err != nil {
		return nil, err
	}
	return app.WhileLocked(cmd.Context(), always, func() (*connection, error) {
		running, err := a.running(c)
		if err != nil || running != nil {
			return running, err
		}
		return openStopped(cmd, c)
	})
}

// always is worth a try: whoever has the ledger is about to announce itself, or to leave.
func always() bool { return true }

// running connects to a running proxy; nil if there is none.
func (a *adminFlags) running(c config.Config) (*connection, error) {
	if url := a.explicit(); url != "" {
		return dial(c, url, tokenFile(c), nil)
	}
	state, err := serving.Find(c.Ledger.Dir)
	if err != nil || state == nil {
		return nil, err
	}
	return dial(c, state.Admin, tokenOf(state), state)
}

// reach connects to a running proxy, without which the command refuses.
func (a *adminFlags) reach(cmd *cobra.Command) (*connection, error) {
	c, err := a.load(cmd)
	if err != nil {
		return nil, err
	}
	conn, err := a.running(c)
	if err == nil && conn == nil {
		err = noProxy(cmd, c)
	}
	return conn, err
}

func noProxy(cmd *cobra.Command, c config.Config) error {
	return fmt.Errorf("%s: no proxy runs for %s; start one with keep-proxy serve, or name its API with --admin", cmd.Name(), c.Ledger.Dir)
}

// tokenOf is the file of the token for the proxy of a data folder: one that a variable names is meant
// to be used, as it may do less than the operator's. Runs that share the proxy of one of them
// go by its own.
func tokenOf(state *serving.State) string {
	if name := os.Getenv(tokenVariable); name != "" && !state.Embedded {
		return name
	}
	return state.TokenFile
}

// tokenFile is where the operator's token is read from.
func tokenFile(c config.Config) string {
	if name := os.Getenv(tokenVariable); name != "" {
		return name
	}
	return c.Admin.TokenFile
}

func dial(c config.Config, url, file string, state *serving.State) (*connection, error) {
	token, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("operator's token: %w; name its file with %s", err, tokenVariable)
	}
	found, err := endpoint(url, state)
	if err != nil {
		return nil, err
	}
	found.Token = string(token)
	made, err := client.New(found)
	if err != nil {
		return nil, err
	}
	return &connection{Client: made, config: c, state: state}, nil
}

// endpoint is an API without a token. One of the data folder shows the certificate that
// its proxy was configured with; any other, one that the system's roots know, or those
// in the file that a variable names.
func endpoint(url string, state *serving.State) (client.Config, error) {
	found := client.Config{URL: url}
	if state != nil {
		found.Certificate = state.Certificate
		return found, nil
	}
	file := os.Getenv(rootsVariable)
	if file == "" {
		return found, nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // The operator's own choice.
	if err != nil {
		return found, fmt.Errorf("%s: %w", rootsVariable, err)
	}
	found.Roots = x509.NewCertPool()
	if !found.Roots.AppendCertsFromPEM(text) {
		return found, fmt.Errorf("%s: %s holds no PEM certificate", rootsVariable, file)
	}
	return found, nil
}

// openStopped opens the ledger of a data folder that nobody serves.
func openStopped(cmd *cobra.Command, c config.Config) (*connection, error) {
	ctx := cmd.Context()
	if _, err := os.Stat(app.LedgerDir(c)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no proxy runs for %s, and it holds no ledger: if it held one, mount or restore that before anything is started; "+
			"else start one with keep-proxy serve, or name its API with --admin", c.Ledger.Dir)
	}
	c = app.Embedded(c)
	opened, err := app.New(ctx, app.Options{
		Config: c, Version: version(), Log: quietLog(c.Log, cmd.ErrOrStderr()), Note: func(string) {},
	})
	if err != nil {
		return nil, err
	}
	if err := opened.StartAdmin(ctx); err != nil {
		return nil, err
	}
	made, err := opened.Client()
	if err != nil {
		return nil, errors.Join(err, stop(ctx, opened))
	}
	return &connection{Client: made, config: c, release: func() error { return stop(ctx, opened) }}, nil
}

// Close lets the connection and what was opened for it go.
func (c *connection) Close() error {
	c.Client.Close()
	if c.release == nil {
		return nil
	}
	return c.release()
}

// stop ends a program that has nothing in flight, whoever hurries.
func stop(ctx context.Context, a *app.App) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return a.Stop(ctx)
}

// with connects, and closes after the work.
func (a *adminFlags) with(cmd *cobra.Command, work func(context.Context, *connection) error) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	return errors.Join(work(cmd.Context(), c), c.Close())
}

// ensureDir makes the data folder, since locks are taken in it before the ledger
// is opened.
func ensureDir(c config.Config) error {
	if err := os.MkdirAll(c.Ledger.Dir, 0o700); err != nil {
		return fmt.Errorf("data folder: %w; choose another with --data-dir", err)
	}
	return nil
}

// shown is a path as a person may type it: below the working folder it is
// relative.
func shown(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	// Nobody works in the root: a path is told whole to the log of a service, which starts there.
	if short, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(short) && filepath.Dir(dir) != dir {
		return short
	}
	return path
}
