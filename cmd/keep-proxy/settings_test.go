package main

import (
	"testing"

	"github.com/spf13/cobra"
)

func TestHintsFindTheSameLedgerAgain(t *testing.T) {
	t.Parallel()
	const advice = "see keep-proxy status, or decide with keep-proxy resolve m-1 (keep-proxy resolve --config other)"
	cases := []struct {
		name string
		give []string
		want string
	}{
		{"nothing was given", nil, ""},
		{"a file", []string{"--config", "config.yaml"}, " --config config.yaml"},
		{"a folder", []string{"--data-dir", "my state"}, " --data-dir 'my state'"},
		{"a file and a folder, which wins over the file's", []string{"--config", "c", "--data-dir", "d"}, " --config c --data-dir d"},
		{"an address", []string{"--admin", "http://127.0.0.1:8081"}, " --admin http://127.0.0.1:8081"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a, cmd := &adminFlags{}, &cobra.Command{Use: "x"}
			a.bind(cmd)
			if err := cmd.ParseFlags(tc.give); err != nil {
				t.Fatal(err)
			}
			if got := again(cmd); got != tc.want {
				t.Errorf("again() = %q, want %q", got, tc.want)
			}
			want := "see keep-proxy status" + tc.want + ", or decide with keep-proxy resolve" + tc.want + " m-1 (keep-proxy resolve --config other)"
			if got := onSameLedger(again(cmd), advice); got != want {
				t.Errorf("the advice is %q, want %q", got, want)
			}
		})
	}
}

func TestHintsOfACommandWithoutALedgerStandAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, cmd := range []*cobra.Command{nil, {Use: "version"}} {
		if got := again(cmd); got != "" {
			t.Errorf("again() = %q", got)
		}
	}
}

func TestHintsKnowWhatIsACommandAndWhatItsFlagsAre(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ flags, give, want string }{
		{" --config c", "keep-proxy ledger accept-loss --reason TEXT", "keep-proxy ledger accept-loss --config c --reason TEXT"},
		{" --config c", "see keep-proxy tail --observed --run r", "see keep-proxy tail --config c --observed --run r"},
		{" --config c", "start one with keep-proxy serve, or", "start one with keep-proxy serve --config c, or"},
		{" --config c", "start it with keep-proxy serve --restored SINCE", "start it with keep-proxy serve --config c --restored SINCE"},
		{" --config c", "held by process 7 (keep-proxy serve), or", "held by process 7 (keep-proxy serve), or"},
		{" --config c", "held by process 7 (keep-proxy status), or", "held by process 7 (keep-proxy status), or"},
		{" --config c", "keep-proxy items reopen or new-attempt", "keep-proxy items reopen --config c or new-attempt"},
		{" --config c --admin http://a", "see keep-proxy check, or keep-proxy health", "see keep-proxy check, or keep-proxy health --config c --admin http://a"},
	} {
		if got := onSameLedger(tc.flags, tc.give); got != tc.want {
			t.Errorf("%q with %q is %q, want %q", tc.give, tc.flags, got, tc.want)
		}
	}
}
