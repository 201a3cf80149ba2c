package badgerstore

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// broad fills a store with n settled mutations, one each second from Epoch on, two to an
// item with a run of its own. Each thousandth is another connector's, and each ten
// thousandth was looked up a day later.
func broad(b *testing.B, s *Store, n int) {
	b.Helper()
	const step = 200
	for from := 0; from < n; from += step {
		err := s.Update(context.Background(), func(tx ledger.Tx) error {
			for i := from; i < min(from+step, n); i++ {
				if err := broadOne(tx, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func broadOne(tx ledger.Tx, i int) error {
	m := ledgertest.SampleMutation(strconv.Itoa(i), ledger.Applied, i)
	m.Item, m.Run = fmt.Sprint("order-", i/2), fmt.Sprint("run-", i/2)
	m.CreatedAt = ledgertest.Epoch.Add(time.Duration(i) * time.Second)
	m.UpdatedAt = m.CreatedAt
	m.Dispatches[0].Run, m.Dispatches[0].Started.Wall, m.Dispatches[0].Ended.Wall = m.Run, m.CreatedAt, m.CreatedAt
	if i%1000 == 0 {
		m.Connector, m.ConnectorVersion = "mail", 2
	}
	if i%10_000 == 0 {
		m.UpdatedAt = m.CreatedAt.Add(24 * time.Hour)
	}
	if err := tx.PutMutation(m); err != nil || i%2 == 1 {
		return err
	}
	item := ledgertest.SampleItem(m.Item, i)
	item.ID = ledger.ItemID(item.Workflow, item.Item)
	r := ledgertest.SampleRun(m.Run, i)
	r.Item, r.TokenSHA256 = m.Item, m.Run
	r.State, r.EndedAt = ledger.RunFinished, m.CreatedAt
	if err := tx.PutItem(item); err != nil {
		return err
	}
	return tx.PutRun(r)
}

// BenchmarkListings gives the time of what items show and impact ask, each over the whole
// ledger, page by page: KEEP_BENCH_RECORDS=1000000 for a million.
func BenchmarkListings(b *testing.B) {
	n := manyRecords(b)
	s, err := Open(context.Background(), testConfig(b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	broad(b, s, n)
	middle := ledgertest.Epoch.Add(time.Duration(n/2) * time.Second)
	b.Run("item", func(b *testing.B) {
		for b.Loop() {
			p, err := s.Items(context.Background(), ledger.Filter{ID: ledger.ItemID("refunds", fmt.Sprint("order-", n/4))})
			if err != nil || len(p.Items) != 1 {
				b.Fatal(len(p.Items), err)
			}
			runs, err := s.Runs(context.Background(), ledger.Filter{Workflow: "refunds", Item: p.Items[0].Item})
			if err != nil || len(runs.Items) != 1 {
				b.Fatal(len(runs.Items), err)
			}
		}
	})
	for name, f := range map[string]ledger.Filter{
		"impact/connector": {Connector: "mail"},
		"impact/version":   {Connector: "mail", ConnectorVersion: 2},
		"impact/noversion": {Connector: "stripe", ConnectorVersion: 99},
		"impact/minutes":   {Touched: ledger.Touched{Since: middle, Until: middle.Add(10 * time.Minute)}},
		"impact/hours":     {Touched: ledger.Touched{Since: middle, Until: middle.Add(3 * time.Hour)}},
		"impact/run":       {Run: fmt.Sprint("run-", n/4)},
	} {
		b.Run(name, func(b *testing.B) {
			count := 0
			for b.Loop() {
				count = benchPages(b, s, f)
			}
			b.ReportMetric(float64(count), "records")
		})
	}
}

func benchPages(b *testing.B, s *Store, f ledger.Filter) (count int) {
	b.Helper()
	for f.Limit = maxLimit; ; {
		p, err := s.Mutations(context.Background(), f)
		if err != nil {
			b.Fatal(err)
		}
		if count += len(p.Items); p.Next == "" {
			return count
		}
		f.Cursor = p.Next
	}
}
