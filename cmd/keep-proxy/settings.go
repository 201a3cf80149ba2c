package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"keep-proxy/config"
)

// settings are the flags by which a command finds its configuration.
type settings struct {
	file    string
	dataDir string
	// keys maps further flags to the keys that they set.
	keys map[string]string
}

// bind adds the flags to a command.
func (s *settings) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.file, "config", "", "configuration file (default: "+configVariable+")")
	cmd.Flags().StringVar(&s.dataDir, "data-dir", "", "folder of ledger, CA and token (ledger.dir)")
	s.key("data-dir", "ledger.dir")
}

// again is the flags by which another command finds the same configuration, with a
// space before each.
func (s *settings) again() string {
	flags := ""
	if s.file != "" {
		flags += " --config " + quoted(s.file)
	}
	if s.dataDir != "" {
		flags += " --data-dir " + quoted(s.dataDir)
	}
	return flags
}

// anywhere is again for any folder.
func (s *settings) anywhere() string {
	there := settings{file: s.file, dataDir: s.dataDir}
	for _, path := range []*string{&there.file, &there.dataDir} {
		if whole, err := filepath.Abs(*path); *path != "" && err == nil {
			*path = whole
		}
	}
	return there.again()
}

func (s *settings) key(flag, key string) {
	if s.keys == nil {
		s.keys = map[string]string{}
	}
	s.keys[flag] = key
}

// configVariable names the configuration file where --config doesn't.
const configVariable = "KEEP_CONFIG"

// load merges defaults, file, environment and the flags that were given.
func (s *settings) load(cmd *cobra.Command) (config.Config, error) {
	if named := os.Getenv(configVariable); s.file == "" && named != "" {
		s.file = named
	}
	o := config.Options{File: s.file, Environ: os.Environ()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		key, ok := s.keys[f.Name]
		if !ok {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		o.Flags = append(o.Flags, config.Flag{Name: f.Name, Key: key, Values: values})
	})
	return config.Load(o)
}

// isTerminal reports whether a person reads w, or types into it.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
