package app

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/config"
	"keep-proxy/ledger"
	"keep-proxy/notify"
	"keep-proxy/upstream"
)

// notificationsFile holds what has to be told, in the data folder.
const notificationsFile = "notify.json"

// openNotify makes the notifier, if anybody is to be called. Webhooks are not held to the
// egress rules: the operator names them, not a script.
func (a *App) openNotify(context.Context) error {
	destinations, err := a.destinations()
	if err != nil || len(destinations) == 0 {
		return err
	}
	a.notifier, err = notify.New(notify.Config{
		Ledger: a.ledger, Path: filepath.Join(a.config.Ledger.Dir, notificationsFile), Destinations: destinations,
		PublicURL: a.config.Admin.PublicURL, Flags: a.options.Flags, StandingAfter: a.config.Notify.StandingAfter,
		Check: func(ctx context.Context, m *ledger.Mutation) (text, cannotVerify string) {
			check := a.admin.ManualCheck(ctx, m) // It is there before anything is told.
			return check.Text, check.CannotVerify
		},
		Now: a.clock.Now, Log: a.options.Log,
	})
	return err
}

// lastWords bounds what is told before the end of the program.
const lastWords = 10 * time.Second

// tellLast tells before the program ends what wasn't told yet. A run's own proxy may end right after a person is asked.
func (a *App) tellLast(ctx context.Context) {
	if !a.notifying {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	if err := a.notifier.Last(ctx); err != nil {
		a.options.Log.Warn().Err(err).Msg("not all was told; the next start tells it")
	}
}

// destinations are the configured ones.
func (a *App) destinations() ([]notify.Destination, error) {
	var out []notify.Destination
	for _, e := range a.config.Notify.Exec {
		out = append(out, notify.NewExec(e.Name, e.Command))
	}
	sources := config.Sources{LookupEnv: os.LookupEnv, ReadFile: os.ReadFile}
	resolving := func(s config.Secret) func() (string, error) {
		return func() (string, error) { return s.Resolve(sources) }
	}
	for _, w := range a.config.Notify.Webhooks {
		trust, err := upstreamTrust(a.config.Proxy.UpstreamCA)
		if err != nil {
			return nil, err
		}
		transport := &http.Transport{ForceAttemptHTTP2: true, DialContext: a.dialNamed} // nil dials as is.
		transport.DialTLSContext = upstream.DialTLS(upstream.Config{Roots: trust.Roots, Named: trust.Named, Dial: a.dialNamed})
		var key func() (string, error)
		if w.Secret != nil {
			key = resolving(*w.Secret)
		}
		out = append(out, notify.NewWebhook(w.Name, resolving(w.URL), key, transport, a.clock.Now))
	}
	return out, nil
}

// destinationsStanding tells how each destination stands; none without notifications.
func (a *App) destinationsStanding() []wire.Destination {
	if a.notifier == nil {
		return nil
	}
	var out []wire.Destination
	for _, s := range a.notifier.Status() {
		out = append(out, wire.Destination{
			Name: s.Name, Waiting: s.Waiting, Dropped: s.Dropped, Tries: s.Tries, Since: s.Since, Error: s.Error,
		})
	}
	return out
}
