package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"keep-proxy/admin/client"
	"keep-proxy/config"
	"keep-proxy/internal/fault"
)

// anyPort is a free port on loopback.
const anyPort = "127.0.0.1:0"

// Embedded returns c for a program that is part of another: every listener on a
// free loopback port, and no address that is advertised for other machines. Runs get
// listeners of their own where proxy.run_listen says, unless that is every interface: they
// are told of loopback then, and nobody else may reach what asks for no credentials.
func Embedded(c config.Config) config.Config {
	c.Proxy.Listen, c.Proxy.Advertise = []string{anyPort}, ""
	if at, err := netip.ParseAddrPort(c.Proxy.RunListen); err == nil && at.Addr().Unmap().IsUnspecified() {
		c.Proxy.RunListen = net.JoinHostPort("127.0.0.1", fmt.Sprint(at.Port()))
	}
	c.Admin.Listen, c.Admin.TLS, c.Admin.HealthListen = anyPort, config.AdminTLS{}, ""
	return c
}

// StartAdmin is Start without the proxy and without the runner, for commands on a
// stopped ledger: it recovers, and serves the API alone, on the configured address.
// Nothing is sent to an upstream.
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
