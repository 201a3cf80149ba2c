package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
)

//nolint:paralleltest // It sets an environment variable.
func TestTheEnvironmentNamesTheConfigurationFile(t *testing.T) {
	named, given := filepath.Join(t.TempDir(), "named.yaml"), filepath.Join(t.TempDir(), "given.yaml")
	for file, limit := range map[string]string{named: "1MiB", given: "2MiB"} {
		if err := os.WriteFile(file, []byte("proxy: {max_body: "+limit+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(configVariable, named)
	for _, c := range []struct {
		args []string
		want int64
	}{{nil, 1 << 20}, {[]string{"--config", given}, 2 << 20}} {
		s := &settings{}
		cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
		s.bind(cmd)
		if err := cmd.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		loaded, err := s.load(cmd)
		if err != nil {
			t.Fatal(err)
		}
		if int64(loaded.Proxy.MaxBody) != c.want {
			t.Errorf("%q: max_body %d, want %d", c.args, loaded.Proxy.MaxBody, c.want)
		}
	}
	if s := (&settings{file: named}).anywhere(); s == "" {
		t.Error("hints don't name the file")
	}
}
