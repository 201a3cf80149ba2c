package rules_test

import (
	"os"
	"path/filepath"
	"testing"

	"keep-proxy/rules"
)

// bundled reads the connector files that come with the program.
func bundled(tb testing.TB) []rules.File {
	tb.Helper()
	names, err := filepath.Glob("../connectors/*.yaml")
	if err != nil || len(names) == 0 {
		tb.Fatalf("no bundled connectors: %v", err)
	}
	var files []rules.File
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		files = append(files, rules.File{Name: filepath.Base(name), Data: data})
	}
	return files
}

func TestBundledConnectorsLoadAndTheirCasesHold(t *testing.T) {
	t.Parallel()
	set, findings := rules.Load(bundled(t), nil, rules.Defaults{})
	if len(findings) > 0 {
		t.Fatalf("findings:\n%v", findings)
	}
	for _, c := range set.Connectors() {
		if c.Cases() < 3 {
			t.Errorf("%s has %d cases; each bundled connector shows how it works by at least 3", c.Name, c.Cases())
		}
	}
	if failed := set.RunCases(); len(failed) > 0 {
		t.Fatalf("cases:\n%v", failed)
	}
}

// Stripe takes a payment intent or its charge for the payment, which are two identities: a re-run that
// names the other one is asked about, and not sent as a second refund.
func TestABundledRefundRefusesDrift(t *testing.T) {
	t.Parallel()
	set, findings := rules.Load(bundled(t), nil, rules.Defaults{})
	if set == nil {
		t.Fatalf("findings:\n%v", findings)
	}
	if op := set.Connector("stripe").Operation("refund.create"); op.Drift != rules.DriftRefuse {
		t.Errorf("drift: %s", op.Drift)
	}
}
