package data

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"keep-proxy/internal/fakes/script"
)

// file is a fake as it is written.
type file struct {
	Name      string                      `yaml:"fake"`
	Title     string                      `yaml:"title"`
	Configure map[string]any              `yaml:"configure"`
	Commit    script.Duration             `yaml:"commit"`
	Settings  map[string]any              `yaml:"settings"`
	Auth      *refusal                    `yaml:"auth"`
	Scope     *expr                       `yaml:"scope"`
	Seed      map[string][]map[string]any `yaml:"seed"`
	Keys      *keyRule                    `yaml:"keys"`
	Header    map[string]text             `yaml:"header"`
	Routes    []*route                    `yaml:"routes"`
	Errors    []DocumentedError           `yaml:"errors"`
}

// refusal is an answer in place of the work. Of auth it is given unless something holds.
type refusal struct {
	When   *expr  `yaml:"when"`
	Unless *expr  `yaml:"unless"`
	Answer answer `yaml:"answer"`
}

// keyRule is how the API dedupes on an idempotency key.
type keyRule struct {
	At expr `yaml:"at"`
	// Scope is whose key it is; by default that of the file.
	Scope   *expr           `yaml:"scope"`
	Window  script.Duration `yaml:"window"`
	Payload *expr           `yaml:"payload"`
	// Replays is all (default) or success: which first answers are kept.
	Replays  string          `yaml:"replays"`
	Replayed map[string]text `yaml:"replayed"`
	// Repeat is what a repeat gets in place of the first answer.
	Repeat *answer `yaml:"repeat"`
	// Differs is error (default), cached, executed or separate.
	Differs   string  `yaml:"differs"`
	Mismatch  *answer `yaml:"mismatch"`
	Busy      *answer `yaml:"busy"`
	MaxLength int     `yaml:"max_length"`
	TooLong   *answer `yaml:"too_long"`
}

// route is what the API does with some requests. Without a change it is a read.
type route struct {
	On       string    `yaml:"on"`
	When     *expr     `yaml:"when"`
	With     yaml.Node `yaml:"with"`
	Identity *text     `yaml:"identity"`
	Effect   *text     `yaml:"effect"`
	Prepares bool      `yaml:"prepares"`
	Keyless  bool      `yaml:"keyless"`
	Sets     bool      `yaml:"sets"`
	Refuse   []refusal `yaml:"refuse"`
	change   `yaml:",inline"`
	Also     []change `yaml:"also"`
	Get      string   `yaml:"get"`
	List     string   `yaml:"list"`
	Where    *expr    `yaml:"where"`
	Strong   bool     `yaml:"strong"`
	Sort     *expr    `yaml:"sort"`
	Reverse  *expr    `yaml:"reverse"`
	Page     *page    `yaml:"page"`
	Answer   answer   `yaml:"answer"`

	names   []string // of with, in the order of the file
	with    map[string]*expr
	methods []string
	path    *regexp.Regexp
}

// change is one change of the objects.
type change struct {
	Create  string    `yaml:"create"`
	Update  string    `yaml:"update"`
	Delete  string    `yaml:"delete"`
	Each    *expr     `yaml:"each"`
	ID      *text     `yaml:"id"`
	Find    *expr     `yaml:"find"`
	Fields  *template `yaml:"fields"`
	Set     *template `yaml:"set"`
	Missing *answer   `yaml:"missing"`
}

func (c change) kind() string { return c.Create + c.Update + c.Delete }

// page is how a list is cut. At most one of After, Number, Offset and Cursor is given.
type page struct {
	Size    *expr  `yaml:"size"`
	Default int    `yaml:"default"`
	Max     int    `yaml:"max"`
	After   *expr  `yaml:"after"`
	Number  *expr  `yaml:"number"`
	Offset  *expr  `yaml:"offset"`
	Cursor  *expr  `yaml:"cursor"`
	Link    string `yaml:"link"`
}

// What a documented error leaves behind.
const (
	ExpectFailed  = "failed"
	ExpectUnknown = "unknown"
	ExpectApplied = "applied"
)

// DocumentedError is an answer that the vendor documents, to be given in place of the API's own.
type DocumentedError struct {
	Name string `yaml:"name"`
	// Operations are those of the connector that may get it; none means all.
	Operations []string `yaml:"operations"`
	// Expect is what a caller can conclude: failed, unknown or applied.
	Expect string `yaml:"expect"`
	Answer answer `yaml:"answer"`
}

// parse reads and compiles a file.
func parse(content []byte) (*file, error) {
	var f file
	if err := yaml.Load(content, &f, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("fake: %w", err)
	}
	var errs []error
	if f.Name == "" || len(f.Routes) == 0 {
		errs = append(errs, errors.New("fake: it needs fake: with a name, and routes"))
	}
	for i, r := range f.Routes {
		if err := r.compile(); err != nil {
			errs = append(errs, fmt.Errorf("fake: routes[%d] %s: %w", i, r.On, err))
		}
	}
	if k := f.Keys; k != nil {
		errs = append(errs, oneOf("keys.replays", k.Replays, "", "all", "success"),
			oneOf("keys.differs", k.Differs, "", "error", "cached", "executed", "separate"))
	}
	for _, e := range f.Errors {
		errs = append(errs, oneOf("errors: "+e.Name+": expect", e.Expect, ExpectFailed, ExpectUnknown, ExpectApplied))
	}
	return &f, errors.Join(errs...)
}

func oneOf(what, word string, words ...string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return fmt.Errorf("fake: %s is %q; it may be %s", what, word, strings.Join(words, ", "))
}

// pathVariable is {name}, or {name...} for the rest of the path.
var pathVariable = regexp.MustCompile(`\\\{([a-z_]+)(\\\.\\\.\\\.)?\\\}`)

func (r *route) compile() error {
	methods, path, ok := strings.Cut(r.On, " ")
	if !ok || !strings.HasPrefix(path, "/") {
		return errors.New(`on: write "METHOD /path"`)
	}
	if r.Reads() && r.Prepares || len(r.Also) > 0 && r.kind() == "" {
		return errors.New("prepares and also need create, update or delete")
	}
	for _, c := range append([]change{r.change}, r.Also...) {
		if (c.Update+c.Delete != "" || r.Get != "") && c.Find == nil {
			return errors.New("update, delete and get need find")
		}
	}
	r.methods, r.with = strings.Split(methods, "|"), map[string]*expr{}
	for i := 0; i+1 < len(r.With.Content); i += 2 {
		name, e := r.With.Content[i].Value, &expr{}
		if err := e.UnmarshalYAML(r.With.Content[i+1]); err != nil {
			return fmt.Errorf("with.%s: %w", name, err)
		}
		r.names, r.with[name] = append(r.names, name), e
	}
	pattern := pathVariable.ReplaceAllStringFunc(regexp.QuoteMeta(path), func(v string) string {
		m := pathVariable.FindStringSubmatch(v)
		if m[2] != "" {
			return "(?P<" + m[1] + ">.+)"
		}
		return "(?P<" + m[1] + ">[^/]+)"
	})
	var err error
	r.path, err = regexp.Compile("^" + pattern + "$")
	return err
}

// Reads reports whether the route changes nothing.
func (r *route) Reads() bool { return r.kind() == "" }

// does is the word of the file for the change.
func (r *route) does() string {
	switch {
	case r.Sets:
		return "set"
	case r.Create != "":
		return "create"
	case r.Update != "":
		return "update"
	}
	return "delete"
}

// compute gives a value to with. What can't be computed has none: it may read objects, which Identity doesn't know.
func (r *route) compute(v values) {
	with := map[string]any{}
	v["with"] = with
	for _, name := range r.names {
		if value, err := r.with[name].eval(v); err == nil {
			with[name] = value
		}
	}
}

// fits reports whether method and path are the route's, and what its path variables are.
func (r *route) fits(method, path string) (map[string]any, bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if !slices.Contains(r.methods, method) && !slices.Contains(r.methods, "*") {
		return nil, false
	}
	found := r.path.FindStringSubmatch(path)
	if found == nil {
		return nil, false
	}
	vars := map[string]any{}
	for i, name := range r.path.SubexpNames() {
		if name != "" {
			vars[name] = found[i]
		}
	}
	return vars, true
}

// kinds are the kinds of objects that the file names.
func (f *file) kinds() []string {
	all := map[string]bool{}
	for name := range f.Seed {
		all[name] = true
	}
	for _, r := range f.Routes {
		for _, c := range append([]change{r.change}, r.Also...) {
			all[c.kind()] = true
		}
		all[r.Get], all[r.List] = true, true
	}
	delete(all, "")
	return slices.Sorted(maps.Keys(all))
}
