package main

import (
	"bytes"
	"io"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"keep-proxy/admin/wire"
	"keep-proxy/app"
	"keep-proxy/config"
)

// words are what serve tells: to a person, or only by its log where that is JSON.
type words struct {
	log zerolog.Logger
	// lines gathers the log if it is JSON.
	lines     *jsonLog
	out, errs io.Writer
}

// greet tells what runs and how to use it.
func (w words) greet(a *app.App, c config.Config, s settings) error {
	if w.lines == nil {
		return facts(w.out,
			"ledger", a.LedgerID()+" in "+shown(c.Ledger.Dir),
			"proxy", a.ProxyAddr(),
			"admin", a.AdminURL()+", token in "+shown(c.Admin.TokenFile),
			"public", c.Admin.PublicURL,
			"health", a.HealthAddr(),
			"run", "keep-proxy run"+s.anywhere()+" --workflow NAME --item ITEM -- COMMAND",
		)
	}
	file := s.file
	if whole, err := filepath.Abs(file); file != "" && err == nil {
		file = whole
	}
	var first bytes.Buffer
	log := w.log.Output(&first).Level(zerolog.InfoLevel) // whatever is logged besides
	line := log.Info()
	for _, field := range [][2]string{
		{"version", version()}, {"ledger", a.LedgerID()}, {"ledger_dir", app.LedgerDir(c)}, {"high_water_file", c.Ledger.HighWaterFile},
		{"proxy", a.ProxyAddr()}, {"admin", a.AdminURL()}, {"token_file", c.Admin.TokenFile}, {"public_url", c.Admin.PublicURL},
		{"health", a.HealthAddr()}, {"config_file", file},
	} {
		if field[1] != "" {
			line = line.Str(field[0], field[1])
		}
	}
	line.Msg("serving")
	w.lines.begin(first.Bytes())
	return nil
}

// run tells where a script finds the proxy of the one run. The address may hold its token, so that no log has it.
func (w words) run(r *wire.OpenedRun) error {
	if w.lines == nil {
		return facts(w.out, "run", r.ID, "address", r.ProxyURL)
	}
	line, err := json.Marshal(map[string]string{"run": r.ID, "address": r.ProxyURL}, json.Deterministic(true))
	if err == nil {
		_, err = w.out.Write(append(line, '\n'))
	}
	return err
}

// sayf tells why there is no run yet.
func (w words) sayf(format string, args ...any) {
	if w.lines == nil {
		saying(w.errs)(format, args...)
		return
	}
	w.log.Warn().Msgf(format, args...)
}

// flush writes what the log has left.
func (w words) flush() {
	if w.lines != nil {
		w.lines.flush()
	}
}

// end tells why serve ended, unless the program tells it.
func (w words) end(cmd *cobra.Command, err error) error {
	defer w.flush()
	if text := sentence(cmd, err); w.lines != nil && text != "" {
		w.log.Error().Msg(text)
		return &toldError{err}
	}
	return err
}
