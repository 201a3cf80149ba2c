package app

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger/badgerstore"
)

// copyLedger writes a consistent copy of the running ledger into a folder of its
// own and hands that to use; the folder is removed afterwards.
func (a *App) copyLedger(ctx context.Context, report func(int), use func(dir string) error) (err error) {
	parent, err := os.MkdirTemp(a.config.Ledger.Dir, "copy-*")
	if err != nil {
		return fmt.Errorf("copy the ledger: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(parent)) }()
	dir := filepath.Join(parent, "ledger")
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
		out = wire.VerifyReport{Sound: err == nil, Findings: []string{}, Events: found.Events}
		out.Records = uint64(max(found.Mutations+found.Runs+found.Items, 0))
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
		archive := tar.NewWriter(w)
		if err := archive.AddFS(os.DirFS(filepath.Dir(dir))); err != nil {
			return fmt.Errorf("back up the ledger: %w", err)
		}
		return archive.Close()
	})
}
