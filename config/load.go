package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/viper"

	"keep-proxy/internal/strictyaml"
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
	if o.File == "" {
		return merged(r, o, nil)
	}
	data, ok := readFile(r, o.File)
	if !ok {
		return merged(r, o, nil)
	}
	return merged(r, o, decodeFile(r, o.File, data))
}

// merged lays the values of the environment and of flags over those of a file. It turns the result into a Config. The
// library viper merges typed values and never sees a text. It would lower-case a text's map keys, and read 10MiB as 0.
func merged(r *report, o Options, file map[string]any) (Config, error) {
	m := viper.New()
	defaults := Default()
	for _, e := range entries() {
		m.SetDefault(e.path, e.in(&defaults).Interface())
	}
	if err := m.MergeConfigMap(nested(file)); err != nil {
		return Config{}, err
	}
	base := workingFolder(r)
	for _, values := range []map[string]any{decodeEnvironment(r, base, o.Environ), decodeFlags(r, base, o.Flags)} {
		for key, value := range values {
			m.Set(key, value)
		}
	}
	var c Config
	for _, e := range entries() {
		value := reflect.ValueOf(m.Get(e.path))
		if !value.IsValid() || value.Type() != e.field.Type {
			return Config{}, fmt.Errorf("%s: merging gave a %T instead of a %s", e.path, m.Get(e.path), e.field.Type)
		}
		e.in(&c).Set(value)
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

// readFile gives the content of the configuration file, or reports why it
// can't be read.
func readFile(r *report, path string) ([]byte, bool) {
	data, err := readBounded(path)
	if err == nil {
		return data, true
	}
	f := &fault{err.Error(), "name a file that can be read with --config"}
	if errors.Is(err, fs.ErrNotExist) {
		f = &fault{"there is no such file", "name another with --config, or leave it out to run on defaults"}
	}
	r.add("", origin{source: path}, f)
	return nil, false
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, strictyaml.MaxFile+1))
	return data, errors.Join(err, f.Close())
}

// decodeFile reads a configuration file strictly and returns the values it gives, by key.
func decodeFile(r *report, name string, data []byte) map[string]any {
	base, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		r.add("", origin{source: name}, &fault{err.Error(), "start in a folder that exists"})
		return nil
	}
	return newDecoder(r, name, base).document(data)
}

func decodeFlags(r *report, base string, flags []Flag) map[string]any {
	values := map[string]any{}
	for _, flag := range flags {
		d := newDecoder(r, "--"+flag.Name, base)
		i := slices.IndexFunc(entries(), func(e entry) bool { return e.path == flag.Key && !e.fileOnly() })
		if i < 0 || len(flag.Values) == 0 {
			r.add(flag.Key, origin{source: d.source}, &fault{"the flag sets no key", "leave it out"})
			continue
		}
		d.given(entries()[i], flag.Values, values)
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

const envPrefix = "KEEP_"

// notConfiguration holds the KEEP_ names that have another meaning. Some are set by run for its child or by notify for
// its commands. Some are read by the command line as a client, and one holds the fault points of tests.
var notConfiguration = []string{
	"KEEP_RUN_ID", "KEEP_WORKFLOW", "KEEP_ITEM", "KEEP_ATTEMPT", "KEEP_ITEM_DONE",
	"KEEP_NOTIFY_TYPE", "KEEP_NOTIFY_ID", "KEEP_NOTIFY_MUTATION",
	"KEEP_ADMIN_URL", "KEEP_ADMIN_TOKEN_FILE", "KEEP_ADMIN_CA_FILE", "KEEP_CONFIG",
	"KEEP_FAULT",
}

// EnvName returns the environment variable of a key: KEEP_PROXY_MAX_BODY for
// proxy.max_body.
func EnvName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// decodeEnvironment reads the KEEP_ variables of environ, each NAME=value, and returns their values by key. An empty
// variable is an unset one. Of a name that comes twice the last counts, as it does for a process.
func decodeEnvironment(r *report, base string, environ []string) map[string]any {
	d := newDecoder(r, "environment", base)
	values := map[string]any{}
	variables := keepVariables(environ)
	for _, e := range entries() {
		name := EnvName(e.path)
		text, set := variables[name]
		if !set || e.fileOnly() || slices.Contains(notConfiguration, name) {
			continue
		}
		delete(variables, name)
		d.given(e, splitText(text, e.list()), values)
	}
	d.strayVariables(variables)
	return values
}

func keepVariables(environ []string) map[string]string {
	given := map[string]string{}
	for _, line := range environ {
		name, text, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		if text == "" {
			delete(given, name)
			continue
		}
		given[name] = text
	}
	return given
}

// splitText parts the elements of a list; they hold no commas.
func splitText(text string, list bool) []string {
	if !list {
		return []string{text}
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// strayVariables reports the variables that stand for no key. Their values are
// not shown: they may be secrets of something else.
func (d *decoder) strayVariables(given map[string]string) {
	var known, names []string
	for _, e := range entries() {
		if !e.fileOnly() {
			known = append(known, EnvName(e.path))
		}
	}
	for name := range given {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(notConfiguration, name) {
			d.report.add(name, origin{source: d.source}, strayFault(name, known))
		}
	}
}

// serviceVariable matches what Kubernetes sets in each pod for each Service of the namespace, unless
// enableServiceLinks is false:
// https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
var serviceVariable = regexp.MustCompile(`^KEEP_[A-Z0-9_]*?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

func strayFault(name string, known []string) *fault {
	for _, e := range entries() {
		if e.fileOnly() && name == EnvName(e.path) {
			return &fault{e.path + " is a list of maps and has no variable", "write it in the configuration file"}
		}
	}
	if serviceVariable.MatchString(name) {
		return &fault{
			"no such variable; Kubernetes sets it for a Service whose name begins with keep-",
			"set enableServiceLinks: false in the pod's spec, or name the Service otherwise",
		}
	}
	if near := strictyaml.Nearest(name, append(slices.Clone(known), notConfiguration...)); near != "" {
		return &fault{"no such variable", "did you mean " + near + "?"}
	}
	return &fault{"no such variable", "unset it; variables that begin with KEEP_ are keep-proxy's own, one for each key of config.example.yaml"}
}
