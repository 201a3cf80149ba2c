package config

import (
	"regexp"
	"slices"
	"strings"

	"keep-proxy/internal/strictyaml"
)

const envPrefix = "KEEP_"

// notConfiguration holds the KEEP_ names that have another meaning: what run
// sets for its child, what a command of notify is told, what the command line
// reads as a client, and the fault points of tests.
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

// decodeEnvironment reads the KEEP_ variables of environ, each NAME=value, and
// returns the values they give, by key. An empty variable is an unset one; of a
// name given twice the last counts, as it does for a process.
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
