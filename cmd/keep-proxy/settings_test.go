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
