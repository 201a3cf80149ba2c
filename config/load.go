package config

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/spf13/viper"
)

// Options says where [Load] takes the configuration from. The zero value gives
// nothing but defaults, and fails, since the default data folder depends on the
// environment.
type Options struct {
	// File is the configuration file's path. Empty: none.
	File string
	// Environ is the environment as os.Environ returns it.
	Environ []string
	// Flags are the flags that were given on the command line.
	Flags []Flag
}

// Flag is a command line flag that sets a key.
type Flag struct {
	// Name is the flag without its dashes, for messages.
	Name string
	// Key is the key in dotted form.
	Key string
	// Values are the given values; a key that is no list takes the last one.
	Values []string
}

// Load merges defaults, file, environment and flags, each over the one before,
// checks the result, and completes its paths. A list replaces the list below it
// as a whole. Relative paths in the file are taken from the file's folder,
// others from the working folder.
//
// The error is an [*Error] with every problem found, never the first alone.
func Load(o Options) (Config, error) {
	r := newReport()
	m := newMerge()
	if o.File != "" {
		if data, ok := readFile(r, o.File); ok {
			m.layer(decodeFile(r, o.File, data))
		}
	}
	return m.finish(r, o)
}

// merge lets viper lay the typed values of one source over those of another.
// viper never sees a text: it would lower-case map keys and read 10MiB as 0.
type merge struct {
	viper *viper.Viper
	err   error
}

func newMerge() *merge {
	m := &merge{viper: viper.New()}
	defaults := Default()
	for _, e := range entries() {
		m.viper.SetDefault(e.path, e.get(&defaults))
	}
	return m
}

// layer lays values, by dotted key, over what is there.
func (m *merge) layer(values map[string]any) {
	m.err = cmp.Or(m.err, m.viper.MergeConfigMap(nested(values)))
}

// finish adds environment and flags, and turns the result into a Config.
func (m *merge) finish(r *report, o Options) (Config, error) {
	m.layer(decodeEnvironment(r, o.Environ))
	for key, value := range decodeFlags(r, o.Flags) {
		m.viper.Set(key, value)
	}
	var c Config
	for _, e := range entries() {
		m.err = cmp.Or(m.err, e.set(&c, m.viper.Get(e.path)))
	}
	if m.err != nil {
		return Config{}, m.err
	}
	locate(r, &c, o.Environ)
	check(r, &c)
	complete(&c)
	c.places = r.places()
	if len(r.problems) > 0 {
		return Config{}, &Error{Problems: sorted(r.problems), Read: c}
	}
	return c, nil
}

// nested turns dotted keys into maps within maps, as viper takes a file.
func nested(values map[string]any) map[string]any {
	root := map[string]any{}
	for key, value := range values {
		at := root
		names := strings.Split(key, ".")
		for _, name := range names[:len(names)-1] {
			below, ok := at[name].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[name] = below
			}
			at = below
		}
		at[names[len(names)-1]] = value
	}
	return root
}

func decodeFlags(r *report, flags []Flag) map[string]any {
	values := map[string]any{}
	base := workingFolder(r)
	for _, flag := range flags {
		d := &decoder{report: r, source: "--" + flag.Name, in: reading{base: base}}
		i := slices.IndexFunc(entries(), func(e entry) bool { return e.path == flag.Key && e.texts != nil })
		if i < 0 || len(flag.Values) == 0 {
			r.add(flag.Key, origin{source: d.source}, &fault{"the flag sets no key", "leave it out"})
			continue
		}
		if v, ok := entries()[i].texts(d, flag.Key, flag.Values); ok {
			values[flag.Key] = v
		}
	}
	return values
}

// workingFolder is where relative paths of the environment and of flags begin.
func workingFolder(r *report) string {
	dir, err := os.Getwd()
	if err != nil {
		r.add("", origin{source: "working folder"}, &fault{err.Error(), "start in a folder that exists"})
	}
	return dir
}

// sorted orders problems by source, in the order of merging, then by place. The
// sort is stable, so that those of one place stay as they were found.
func sorted(problems []Problem) []Problem {
	rank := func(p Problem) int {
		switch {
		case p.Line > 0:
			return 0
		case p.Source == "environment":
			return 2
		case strings.HasPrefix(p.Source, "--"):
			return 3
		default:
			return 1
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return problems
}
