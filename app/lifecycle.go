package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"keep-proxy/admin"
	"keep-proxy/admin/client"
	"keep-proxy/config"
	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
	"keep-proxy/proxy"
)

// Start settles what an earlier process left, listens and serves. It returns once
// the listeners are open; Wait tells when serving ends.
func (a *App) Start(ctx context.Context) error {
	if err := a.start(ctx); err != nil {
		return errors.Join(err, a.Stop(ctx))
	}
	return nil
}

func (a *App) start(ctx context.Context) error {
	var counts ledger.RecoverCounts
	err := a.telling("recovery", func() (err error) {
		counts, err = a.reconciler.Recover(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("recovery: nothing was started: %w", err)
	}
	if text := recovered(counts); text != "" {
		a.note(text)
	}
	if err := a.listen(ctx); err != nil {
		return err
	}
	a.running.Go(func() { a.end("proxy", a.proxy.Serve(a.proxyListeners...)) }) //nolint:contextcheck // A request ends with its connection.
	a.running.Go(func() { a.end("admin", a.admin.Serve(a.adminListener)) })
	if a.healthListener != nil {
		a.running.Go(func() { a.end("health", a.admin.ServeHealth(a.healthListener)) })
	}
	if a.options.Trial == nil {
		a.running.Go(func() { a.reconciler.Run(a.ctx) })
		a.running.Go(a.expireRuns)
		a.running.Go(func() { a.keeper.run(a.ctx) })
	}
	if a.options.Watch {
		if w := newWatching(a); w != nil {
			a.running.Go(func() { w.run(a.ctx) })
		}
	}
	if a.notifier != nil {
		a.notifying = true
		a.running.Go(func() { a.notifier.Run(a.ctx) })
	}
	return nil
}

// end notes that a part has stopped serving.
func (a *App) end(part string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		a.ended <- fmt.Errorf("%s: %w", part, err)
	}
}

// listen opens every listener, and none if one fails.
func (a *App) listen(ctx context.Context) error {
	for _, address := range a.config.Proxy.Listen {
		l, err := listenAt(ctx, address)
		if err != nil {
			return fmt.Errorf("proxy.listen %s: %w; choose another with --listen", address, taken(err, address))
		}
		a.egress.protect(l.Addr())
		a.proxyListeners = append(a.proxyListeners, l)
	}
	l, err := a.listenAdmin() //nolint:contextcheck // Listening doesn't wait.
	if err != nil {
		return fmt.Errorf("%w; choose another with --admin-listen", taken(err, a.config.Admin.Listen))
	}
	a.egress.protect(l.Addr())
	a.adminListener = a.egress.bound.wrap(l)
	if address := a.config.Admin.HealthListen; address != "" {
		if a.healthListener, err = admin.ListenOpenly("admin.health_listen", address); err != nil { //nolint:contextcheck // Listening doesn't wait.
			return taken(err, address)
		}
		a.egress.protect(a.healthListener.Addr())
		a.healthListener = a.egress.bound.wrap(a.healthListener)
	}
	return nil
}

// listenAdmin opens the admin API's listener. Others may reach it with TLS alone.
func (a *App) listenAdmin() (net.Listener, error) {
	if a.config.Admin.TLS.Enabled() {
		return admin.ListenOpenly("admin.listen", a.config.Admin.Listen)
	}
	return admin.Listen(a.config.Admin.Listen)
}

func listenAt(ctx context.Context, address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if err := admin.RemoveStale(ctx, path); err != nil {
			return nil, err
		}
		return (&net.ListenConfig{}).Listen(ctx, "unix", path)
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}

// expireRuns ends runs whose time limit or grace is over.
func (a *App) expireRuns() {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := a.ledger.ExpireRuns(a.ctx); err != nil && a.ctx.Err() == nil {
			a.options.Log.Error().Err(err).Msg("runs not held against their time limits")
		}
		if err := a.runDoors.sweep(a.ctx, a.clock.Now()); err != nil && a.ctx.Err() == nil {
			a.options.Log.Error().Err(err).Msg("listeners of ended runs not closed")
		}
	}
}

// Wait returns when ctx ends, or with the error of the first part that stopped
// serving by itself.
func (a *App) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.ended:
		return err
	}
}

// Stop refuses new requests, lets dispatches end and their outcomes be recorded
// until ctx ends, and closes everything. It may be called more than once.
func (a *App) Stop(ctx context.Context) error {
	var err error
	a.stop.Do(func() {
		err = errors.Join(a.proxy.Shutdown(ctx), a.admin.Shutdown(ctx))
		for _, l := range a.proxyListeners {
			_ = l.Close()
		}
		a.runDoors.close()
		for _, l := range []net.Listener{a.adminListener, a.healthListener} {
			if l != nil {
				_ = l.Close()
			}
		}
		a.cancel()
		a.running.Wait()
		a.tellLast(ctx)
		err = errors.Join(err, a.close()) //nolint:contextcheck // What was opened is closed, also when ctx has ended.
	})
	return err
}

// close releases what New opened, as far as it came.
func (a *App) close() error {
	a.cancel()
	if a.proxy != nil {
		a.proxy.Close()
	}
	if a.reconciler != nil {
		a.reconciler.Close()
	}
	if a.sender.Sender != nil {
		a.sender.CloseIdle()
		a.reads.CloseIdle()
	}
	if err := a.tracing.close(); err != nil {
		a.options.Log.Warn().Err(err).Msg("the last spans were not taken")
	}
	if a.store == nil {
		return nil
	}
	if err := a.store.Close(); err != nil {
		return fmt.Errorf("close the ledger: %w", err)
	}
	return nil
}

// ProxyAddr is the proxy's host:port as sandboxes see it; empty before Start.
func (a *App) ProxyAddr() string { return advertised(a.config.Proxy, a.proxyListeners) }

// ServeRun answers on a listener of one run's own, as [proxy.Proxy.ServeRun] does, until it is closed or Stop.
func (a *App) ServeRun(l net.Listener, token string) error {
	return a.proxy.ServeRun(l, proxy.TokenDigest(token))
}

// AdminAddr is the admin API's address: host:port or unix:/path; empty before
// Start.
func (a *App) AdminAddr() string { return addressOf(a.adminListener) }

func addressOf(l net.Listener) string {
	switch {
	case l == nil:
		return ""
	case l.Addr().Network() == "unix":
		return "unix:" + l.Addr().String()
	}
	return l.Addr().String()
}

// AdminURL is AdminAddr as a URL that this machine's own programs can use.
func (a *App) AdminURL() string {
	address := a.AdminAddr()
	if address == "" || strings.HasPrefix(address, "unix:") {
		return address
	}
	if tcp, ok := a.adminListener.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		address = net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
	}
	if a.config.Admin.TLS.Enabled() {
		return "https://" + address
	}
	return "http://" + address
}

// HealthAddr is where probes alone are answered: host:port or unix:/path; empty before
// Start, and without admin.health_listen.
func (a *App) HealthAddr() string { return addressOf(a.healthListener) }

// LedgerID is the ledger's own id.
func (a *App) LedgerID() string { return a.store.ID() }

// CAFile is the path of the CA's certificate.
func (a *App) CAFile() string { return a.environ.caFile }

func (a *App) ready() error {
	if a.adminListener == nil {
		return errors.New("not listening yet")
	}
	if a.modes.halted() {
		return errors.New("an operator keeps work back; see GET /v1/status")
	}
	return errors.Join(a.store.Healthy(), a.store.Spacious())
}

// anyPort is a free port on loopback.
const anyPort = "127.0.0.1:0"

// Embedded returns c for a program that is part of another. Every listener has a free loopback port, and no address is
// advertised for other machines. Runs get listeners of their own where proxy.run_listen says. If that is every
// interface, it becomes loopback, which is what they are told. Nobody else may reach what asks for no credentials.
func Embedded(c config.Config) config.Config {
	c.Proxy.Listen, c.Proxy.Advertise = []string{anyPort}, ""
	if at, err := netip.ParseAddrPort(c.Proxy.RunListen); err == nil && at.Addr().Unmap().IsUnspecified() {
		c.Proxy.RunListen = net.JoinHostPort("127.0.0.1", fmt.Sprint(at.Port()))
	}
	c.Admin.Listen, c.Admin.TLS, c.Admin.HealthListen = anyPort, config.AdminTLS{}, ""
	return c
}

// StartAdmin is Start without the proxy and without the runner, for commands on a stopped ledger. It recovers, and
// serves the API alone, on the configured address. Nothing is sent to an upstream.
func (a *App) StartAdmin(ctx context.Context) error {
	if err := a.startAdmin(ctx); err != nil {
		return errors.Join(err, a.Stop(ctx))
	}
	return nil
}

func (a *App) startAdmin(ctx context.Context) error {
	if _, err := a.reconciler.Recover(ctx); err != nil {
		return fmt.Errorf("recovery: nothing was started: %w", err)
	}
	l, err := a.listenAdmin() //nolint:contextcheck // Listening doesn't wait.
	if err != nil {
		return err
	}
	a.adminListener = l
	a.running.Go(func() { a.end("admin", a.admin.Serve(a.adminListener)) })
	return nil
}

// Client returns a client of this program's own API, with the operator's token.
func (a *App) Client() (*client.Client, error) {
	return client.New(client.Config{URL: a.AdminURL(), Token: a.token, Certificate: a.config.Admin.TLS.CertFile})
}

// ArmFaults arms the crash points that KEEP_FAULT names. A program calls it once,
// before New; without the variable it does nothing.
func ArmFaults() error { return fault.ArmFromEnv() }
