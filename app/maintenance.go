package app

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger/badgerstore"
)

// A copy of the ledger lies in copyName, in a folder of its own in the data folder. That folder's name is copyPrefix
// with a number. Nobody else uses such a name.
const (
	copyPrefix = ".ledger-copy-"
	copyName   = "ledger"
)

// removeCopies removes copies that a process before this one left. The ledger is open, so that no other
// process makes one here.
func (a *App) removeCopies() {
	all, err := os.ReadDir(a.config.Ledger.Dir)
	for _, f := range all {
		if strings.HasPrefix(f.Name(), copyPrefix) {
			err = errors.Join(err, badgerstore.RemoveCopy(filepath.Join(a.config.Ledger.Dir, f.Name()), copyName))
		}
	}
	if err != nil {
		a.options.Log.Warn().Err(err).Msg("a copy of the ledger that an earlier process left can't be removed")
	}
}

// copyLedger writes a consistent copy of the running ledger into a folder of its own and passes that to use. The folder
// is removed afterwards.
func (a *App) copyLedger(ctx context.Context, report func(int), use func(dir string) error) (err error) {
	parent, err := os.MkdirTemp(a.config.Ledger.Dir, copyPrefix+"*")
	if err != nil {
		return fmt.Errorf("copy the ledger: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(parent)) }()
	dir := filepath.Join(parent, copyName)
	if err := a.store.Backup(ctx, dir, report); err != nil {
		return err
	}
	return use(dir)
}

// verify checks a consistent copy of the running ledger: the store itself has its
// folder locked.
func (a *App) verify(ctx context.Context, progress func(wire.Progress)) (wire.VerifyReport, error) {
	report := func(what string) func(int) {
		return func(done int) { progress(wire.Progress{What: what, Done: int64(done)}) }
	}
	var out wire.VerifyReport
	err := a.copyLedger(ctx, report("copied"), func(dir string) error {
		c := StoreConfig(a.config, a.options.Version, a.options.Log, a.clock)
		c.Dir, c.HighWaterFile = dir, ""
		found, err := badgerstore.Verify(ctx, c, report("verified"))
		out = wire.VerifyReport{Sound: err == nil, Findings: []string{}, Events: found.Events, Records: found.Records()}
		if err != nil && ctx.Err() == nil {
			out.Findings = append(out.Findings, err.Error())
			return nil
		}
		return err
	})
	return out, err
}

// backup writes a consistent copy of the running ledger as a tar archive whose one
// folder is ledger/.
func (a *App) backup(ctx context.Context, w io.Writer) error {
	return a.copyLedger(ctx, nil, func(dir string) error {
		archive := tar.NewWriter(whileRoom{w, a.store.Spacious})
		if err := archive.AddFS(os.DirFS(filepath.Dir(dir))); err != nil {
			return fmt.Errorf("back up the ledger: %w", err)
		}
		return archive.Close()
	})
}

// whileRoom is a writer that fails once there is too little room. The output is mostly on the ledger's disk, beside the
// copy that it is made of. A full disk would end the proxy.
type whileRoom struct {
	io.Writer
	spacious func() error
}

// Write implements io.Writer.
func (w whileRoom) Write(p []byte) (int, error) {
	if err := w.spacious(); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}
