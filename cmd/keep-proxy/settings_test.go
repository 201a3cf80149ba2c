package main

import "testing"

func TestHintsFindTheSameLedgerAgain(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		give adminFlags
		want string
	}{
		{"nothing was given", adminFlags{}, ""},
		{"a file", adminFlags{settings: settings{file: "config.yaml"}}, " --config config.yaml"},
		{"a folder", adminFlags{settings: settings{dataDir: "my state"}}, " --data-dir 'my state'"},
		{"a file and a folder, which wins over the file's", adminFlags{settings: settings{file: "c", dataDir: "d"}}, " --config c --data-dir d"},
		{"an address", adminFlags{url: "http://127.0.0.1:8081"}, " --admin http://127.0.0.1:8081"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := tc.give.again(); got != tc.want {
				t.Errorf("again() = %q, want %q", got, tc.want)
			}
		})
	}
}
