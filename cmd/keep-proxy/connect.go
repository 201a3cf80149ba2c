package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
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

const (
	// stopTimeout bounds the orderly end of a program that has nothing in flight.
	stopTimeout = 30 * time.Second
	// tellAfter is how long other runs are waited for in silence.
	tellAfter = time.Second
)

// adminFlags are the flags by which a command finds the admin API.
type adminFlags struct {
	settings

	url string
	// anonymous leaves the token out, for answers that need none.
	anonymous bool
}

func (a *adminFlags) bind(cmd *cobra.Command) {
	a.settings.bind(cmd)
	cmd.Flags().StringVar(&a.url, "admin", "", "admin API of a running proxy (default $"+adminVariable+", else the data folder's)")
}

// explicit is the address that a flag or a variable names; empty for neither.
func (a *adminFlags) explicit() string { return cmp.Or(a.url, os.Getenv(adminVariable)) }

// connection is an admin API to ask. Close it.
type connection struct {
	*client.Client

	config config.Config
	// state is what the data folder's proxy says of itself; nil for any other.
	state *serving.State
	// release ends what was opened for the connection; nil for nothing.
	release func() error
}

// Close ends the connection and what was opened for it.
func (c *connection) Close() error {
	c.Client.Close()
	if c.release == nil {
		return nil
	}
	return c.release()
}

// with connects to a named API, or to that of the data folder's proxy. Without either it opens one of its own on the
// stopped ledger. It closes the connection after the work.
func (a *adminFlags) with(cmd *cobra.Command, work func(context.Context, *connection) error) error {
	c, err := a.load(cmd)
	if err != nil {
		return err
	}
	conn, err := app.WhileLocked(cmd.Context(), always, func() (*connection, error) {
		running, err := a.running(c)
		if err != nil || running != nil {
			return running, err
		}
		return openStopped(cmd, c)
	})
	if err != nil {
		return err
	}
	return errors.Join(work(cmd.Context(), conn), conn.Close())
}

// always tries again: whoever has the ledger is about to announce itself, or to leave.
func always() bool { return true }

// running connects to a running proxy: where it was named, else where the data folder says. It returns nil if there
// is none.
func (a *adminFlags) running(c config.Config) (*connection, error) {
	if url := a.explicit(); url != "" {
		return a.dial(c, url, nil)
	}
	state, err := serving.Find(c.Ledger.Dir)
	if err != nil || state == nil {
		return nil, err
	}
	return a.dial(c, state.Admin, state)
}

// reach connects to a running proxy, without which the command refuses.
func (a *adminFlags) reach(cmd *cobra.Command) (conn *connection, err error) {
	var c config.Config
	if !a.anonymous || a.explicit() == "" { // Else nothing of the configuration is needed.
		if c, err = a.load(cmd); err != nil {
			return nil, err
		}
	}
	conn, err = a.running(c)
	if err == nil && conn == nil {
		err = fmt.Errorf("%s: no proxy runs for %s; start one with keep-proxy serve, or name its API with --admin", cmd.Name(), c.Ledger.Dir)
	}
	return conn, err
}

// tokenFile is where the operator's token is read from. A variable's file comes first: its token may do less than the
// operator's. Else it is the proxy's file. Runs that share an embedded proxy use that proxy's file.
func tokenFile(c config.Config, state *serving.State) string {
	named := os.Getenv(tokenVariable)
	switch {
	case named != "" && (state == nil || !state.Embedded):
		return named
	case state != nil:
		return state.TokenFile
	}
	return c.Admin.TokenFile
}

// dial connects to the API at an address; state is that of the data folder's proxy, nil for any other.
func (a *adminFlags) dial(c config.Config, url string, state *serving.State) (*connection, error) {
	found, err := endpoint(url, state)
	if err != nil {
		return nil, err
	}
	if !a.anonymous {
		token, err := os.ReadFile(tokenFile(c, state))
		if err != nil {
			return nil, fmt.Errorf("operator's token: %w; name its file with %s", err, tokenVariable)
		}
		found.Token = string(token)
	}
	made, err := client.New(found)
	if err != nil {
		return nil, err
	}
	return &connection{Client: made, config: c, state: state}, nil
}

// endpoint is an API without a token. That of the data folder shows the certificate that its proxy was configured
// with. Any other shows one that the system's roots know, or those in the file that a variable names.
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

// openStopped opens the ledger of a data folder that nobody serves. It has to be this user's: else the proxy couldn't
// read what opening writes.
func openStopped(cmd *cobra.Command, c config.Config) (*connection, error) {
	folder, err := os.Stat(app.LedgerDir(c))
	if err == nil {
		if owner, known := folder.Sys().(*syscall.Stat_t); known && int(owner.Uid) != os.Getuid() {
			return nil, fmt.Errorf("no proxy runs for %s, and its ledger is another user's: ask as the user with the id %d", c.Ledger.Dir, owner.Uid)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no proxy runs for %s, and it holds no ledger: if it held one, mount or restore that before anything is started; "+
			"else start one with keep-proxy serve, or name its API with --admin", c.Ledger.Dir)
	}
	ctx := cmd.Context()
	a, conn, err := startHere(ctx, cmd, c, app.Options{Note: func(string) {}}, (*app.App).StartAdmin)
	if err != nil {
		return nil, err
	}
	conn.release = func() error { return stop(ctx, a) }
	return conn, nil
}

// startHere starts a program in this process, and connects to it.
func startHere(
	ctx context.Context, cmd *cobra.Command, c config.Config, o app.Options, start func(*app.App, context.Context) error,
) (*app.App, *connection, error) {
	o.Config, o.Version, o.Log = app.Embedded(c), version(), quietLog(c.Log, cmd.ErrOrStderr())
	a, err := app.New(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	if err := start(a, ctx); err != nil {
		return nil, nil, err
	}
	made, err := a.Client()
	if err != nil {
		return nil, nil, errors.Join(err, stop(ctx, a))
	}
	return a, &connection{Client: made, config: o.Config}, nil
}

// stop ends a program that has nothing in flight, whoever hurries.
func stop(ctx context.Context, a *app.App) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return a.Stop(ctx)
}

// host is the proxy that a run goes through: a running one, or one that this process embeds.
type host struct {
	*connection

	// embedded says that a run holds the proxy, this one or another.
	embedded bool
	// admin is the address of an embedded proxy's API.
	admin string
	// share keeps an embedded proxy from ending; nil with any other.
	share *serving.Participant
	// own and announced are set if this process embeds it.
	own       *app.App
	announced *serving.Announcement
}

// host finds the proxy, joins another run's, or embeds one.
func (a *adminFlags) host(ctx context.Context, cmd *cobra.Command, c config.Config) (*host, error) {
	if url := a.explicit(); url != "" {
		made, err := a.dial(c, url, nil)
		if err != nil {
			return nil, err
		}
		return &host{connection: made}, nil
	}
	if err := ensureDir(c); err != nil {
		return nil, err
	}
	return app.WhileLocked(ctx, always, func() (*host, error) { return a.joinOrEmbed(ctx, cmd, c) })
}

// joinOrEmbed takes a share first: what is found then can't end before it is used.
func (a *adminFlags) joinOrEmbed(ctx context.Context, cmd *cobra.Command, c config.Config) (h *host, err error) {
	share, err := serving.Join(ctx, c.Ledger.Dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if h == nil || !h.embedded {
			share.Leave()
		} else {
			h.share = share
		}
	}()
	state, err := serving.Find(c.Ledger.Dir)
	if err != nil {
		return nil, err
	}
	if state == nil {
		return a.embed(ctx, cmd, c)
	}
	made, err := a.dial(c, state.Admin, state)
	if err != nil {
		return nil, err
	}
	return &host{connection: made, embedded: state.Embedded, admin: state.Admin}, nil
}

// embed starts a proxy in this process.
func (a *adminFlags) embed(ctx context.Context, cmd *cobra.Command, c config.Config) (*host, error) {
	note := func(text string) { saying(cmd.ErrOrStderr())("%s", text) }
	own, conn, err := startHere(ctx, cmd, c, app.Options{Note: note, Trace: true, Flags: a.anywhere()}, (*app.App).Start)
	if err != nil {
		return nil, err
	}
	announced, err := serving.Announce(c.Ledger.Dir, stateOf(own, conn.config, true))
	if err != nil {
		conn.Client.Close()
		return nil, errors.Join(err, stop(ctx, own))
	}
	return &host{connection: conn, embedded: true, own: own, announced: announced}, nil
}

// leave ends the use of the proxy. A proxy of this process ends with the last run that joined it; waits tells the
// person so. A person who can't wait ends it, and with it their runs.
func (h *host) leave(ctx context.Context, waits func()) error {
	h.Client.Close()
	if h.share == nil {
		return nil
	}
	defer h.share.Leave()
	if h.own == nil {
		return nil
	}
	silent, cancel := context.WithTimeout(ctx, tellAfter)
	defer cancel()
	err := h.share.Last(silent)
	if errors.Is(err, context.DeadlineExceeded) {
		waits()
		err = h.share.Last(ctx)
	}
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, h.announced.Withdraw(), stop(ctx, h.own))
}

// gone reports whether the proxy was another run's, and was killed with it.
func (h *host) gone() bool {
	if !h.embedded || h.own != nil {
		return false
	}
	state, err := serving.Find(h.config.Ledger.Dir)
	return err == nil && (state == nil || state.Admin != h.admin)
}

// ensureDir makes the data folder, since locks are taken in it before the ledger is opened.
func ensureDir(c config.Config) error {
	if err := os.MkdirAll(c.Ledger.Dir, 0o700); err != nil {
		return fmt.Errorf("data folder: %w; choose another with --data-dir", err)
	}
	return nil
}

// shown is a path as a person may type it: relative below the working folder.
func shown(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	// Nobody works in the root. A service starts there, and its log tells the whole path.
	if short, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(short) && filepath.Dir(dir) != dir {
		return short
	}
	return path
}
