package proxy

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkLeaf takes the time of a certificate for a host that is known, and for a new
// one.
func BenchmarkLeaf(b *testing.B) {
	dir := b.TempDir()
	ca, err := LoadCA(dir+"/ca.pem", dir+"/ca.key", time.Now())
	if err != nil {
		b.Fatal(err)
	}
	made, err := newLeaves(ca, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for name, host := range map[string]func() string{
		"known": func() string { return "api.test" },
		"new":   func() string { n++; return fmt.Sprintf("api-%d.test", n) },
	} {
		b.Run(name, func(b *testing.B) {
			if _, err := made.get("api.test"); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := made.get(host()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
