package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore"
)

// stocked makes a ledger with n applied mutations, two to an item.
func stocked(b *testing.B, dir string, n int) {
	b.Helper()
	now := func() ledger.Stamp { return ledger.Stamp{Wall: time.Now(), BootID: "bench"} }
	ids := 0
	s, err := badgerstore.Open(b.Context(), badgerstore.Config{
		Dir: dir, Version: "bench", Logger: zerolog.Nop(), Now: now,
		NewID: func() string { ids++; return "bench-" + strconv.Itoa(ids) },
	})
	if err != nil {
		b.Fatal(err)
	}
	const step = 200
	for from := 0; from < n; from += step {
		err := s.Update(context.Background(), func(tx ledger.Tx) error {
			for i := from; i < from+step; i++ {
				scope := ledger.Scope{Workflow: "old", Item: strconv.Itoa(i / 2), Attempt: 1}
				m := &ledger.Mutation{
					Intent:    ledger.Intent{Scope: scope, Connector: "bank", Operation: "pay"},
					Version:   1,
					CreatedAt: time.Now(),
					UpdatedAt: time.Now(),
					Outcome:   ledger.Outcome{State: ledger.Applied},
				}
				copy(m.Key[:], fmt.Sprintf("%032d", i))
				m.ID = m.Key.ID()
				if err := tx.PutMutation(m); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// benchRun times keep-proxy run -- true from its start to its end.
func benchRun(b *testing.B, name, config string) {
	b.Helper()
	var spent time.Duration
	n := 0
	for ; b.Loop(); n++ {
		cmd := exec.Command(name, "run", "--config", config, "--workflow", "bench", "--item", fmt.Sprintf("%d-%d", b.N, n), "--", "true")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		spent += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	b.ReportMetric(float64(spent.Microseconds())/1000/float64(n), "cpu-ms")
}

// BenchmarkRun is what run adds to a command: with a proxy that runs, and with one of its
// own on an empty ledger and on one of KEEP_BENCH_RECORDS (100,000).
func BenchmarkRun(b *testing.B) {
	records, err := strconv.Atoi(os.Getenv("KEEP_BENCH_RECORDS"))
	if err != nil {
		records = 100_000
	}
	b.Setenv("KEEP_BENCH_RECORDS", "") // Names of ours are configuration.
	if err := os.Unsetenv("KEEP_BENCH_RECORDS"); err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	name := filepath.Join(dir, "keep-proxy")
	content, err := os.ReadFile(self)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o700); err != nil {
		b.Fatal(err)
	}
	configured := func(data string) string {
		file := filepath.Join(dir, filepath.Base(data)+".yaml")
		text := fmt.Sprintf("proxy: {listen: [\"127.0.0.1:0\"]}\nadmin: {listen: \"127.0.0.1:0\"}\nledger: {dir: %q, min_free: 1MiB}\nlog: {level: error}\n", data)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		return file
	}
	b.Run("embedded/records=0", func(b *testing.B) { benchRun(b, name, configured(filepath.Join(dir, "empty"))) })
	full := filepath.Join(dir, "full")
	if err := os.MkdirAll(full, 0o700); err != nil {
		b.Fatal(err)
	}
	stocked(b, full, records)
	b.Run(fmt.Sprintf("embedded/records=%d", records), func(b *testing.B) { benchRun(b, name, configured(full)) })
	b.Run("running", func(b *testing.B) {
		config := configured(filepath.Join(dir, "served"))
		var told bytes.Buffer
		serve := exec.Command(name, "serve", "--config", config)
		serve.Stdout, serve.Stderr = &told, &told
		if err := serve.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = serve.Process.Kill(); _ = serve.Wait() })
		for late := time.Now().Add(time.Minute); exec.Command(name, "health", "--config", config).Run() != nil; {
			if time.Now().After(late) {
				b.Fatal("the proxy doesn't run: " + told.String())
			}
		}
		benchRun(b, name, config)
	})
}
