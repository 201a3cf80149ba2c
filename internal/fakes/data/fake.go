package data

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
	"keep-proxy/internal/fakes/vendorkey"
)

// Fake is a fake API that a file describes. Its objects are those of the file's seed, and what its log says.
type Fake struct {
	file *file
	keys *vendorkey.Keys

	from int

	mu       sync.Mutex
	settings map[string]any
	objects  []object // in the order of their making
	made     map[string]int
}

// effect is a change as the log holds it: what the route does, and the objects as it leaves them.
type effect struct {
	Did     string   `json:"did"`
	Objects []object `json:"objects"`
}

// Did is what an effect of a fake's log did: create, update, delete, or set for what may be repeated.
func Did(e oracle.Event) string {
	var done effect
	_ = json.Unmarshal(e.Details, &done) // What isn't ours did nothing that we know.
	return done.Did
}

// object is one object as the log holds it.
type object struct {
	Kind   string         `json:"kind"`
	Row    int            `json:"row"` // its number within the kind, from 1
	Scope  string         `json:"scope,omitempty"`
	At     time.Time      `json:"at,omitzero"`
	Gone   bool           `json:"gone,omitempty"`
	Fields map[string]any `json:"fields"`
}

// Load reads a fake.
func Load(content []byte) (*Fake, error) {
	f, err := parse(content)
	if err != nil {
		return nil, err
	}
	widened(f.Settings)
	for _, some := range f.Seed {
		for i := range some {
			widened(some[i])
		}
	}
	fake := (&Fake{file: f}).Fresh(0)
	return fake, fake.Adjust(nil)
}

// Fresh is the fake of the same file, with the objects and settings that it begins with. What it makes is numbered from
// a number on: no id of two fakes is the same then.
func (f *Fake) Fresh(from int) *Fake {
	fresh := &Fake{file: f.file, from: from, settings: map[string]any{"lag": "0s"}, made: map[string]int{}, keys: vendorkey.New(0)}
	if k := f.file.Keys; k != nil {
		fresh.settings["key_window"] = k.Window.Std().String()
	}
	maps.Copy(fresh.settings, f.file.Settings)
	fresh.keys.SetWindow(fresh.duration("key_window"))
	for kind, some := range f.file.Seed {
		for _, fields := range some {
			fresh.made[kind]++
			fresh.put(object{Kind: kind, Row: fresh.made[kind], Fields: fields})
		}
	}
	return fresh
}

// widened has the numbers of YAML as those of JSON.
func widened(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case map[string]any:
		for name := range v {
			v[name] = widened(v[name])
		}
	case []any:
		for i := range v {
			v[i] = widened(v[i])
		}
	}
	return v
}

// Name returns the file's name for the API.
func (f *Fake) Name() string { return f.file.Name }

// Configure is what the connector needs in the configuration besides, as YAML: credentials, parameters.
func (f *Fake) Configure() map[string]any { return f.file.Configure }

// Commit is how late the API may commit what it doesn't answer; 0 if the file doesn't say.
func (f *Fake) Commit() time.Duration { return f.file.Commit.Std() }

// Changes reports whether the file has a route that changes something for such requests, of this method and path.
func (f *Fake) Changes(method, path string) bool {
	return slices.ContainsFunc(f.file.Routes, func(r *route) bool {
		_, fits := r.fits(method, path)
		return fits && !r.Reads()
	})
}

// KeyWindow is how long a key is remembered; 0 for no keys.
func (f *Fake) KeyWindow() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.duration("key_window")
}

// Errors are the errors that the vendor documents.
func (f *Fake) Errors() []DocumentedError { return f.file.Errors }

// Adjust changes the settings that the JSON object names. A setting that the file doesn't have is an error.
func (f *Fake) Adjust(settings []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := maps.Clone(f.settings)
	if settings != nil {
		given, err := parseJSON(settings)
		if err != nil {
			return fmt.Errorf("%s: settings: %w", f.file.Name, err)
		}
		all, ok := given.(map[string]any)
		for name, value := range all {
			if _, known := next[name]; !known {
				return fmt.Errorf("%s: settings: there is no %s", f.file.Name, name)
			}
			next[name] = value
		}
		if !ok {
			return fmt.Errorf("%s: settings: not an object", f.file.Name)
		}
	}
	for _, name := range []string{"lag", "key_window"} {
		if text, ok := next[name]; ok {
			if _, err := time.ParseDuration(fmt.Sprint(text)); err != nil {
				return fmt.Errorf("%s: settings: %s: %w", f.file.Name, name, err)
			}
		}
	}
	f.settings = next
	f.keys.SetWindow(f.duration("key_window"))
	return nil
}

// duration is a setting that Adjust has read. The lock is held.
func (f *Fake) duration(name string) time.Duration {
	d, _ := time.ParseDuration(fmt.Sprint(f.settings[name]))
	return d
}

// Restore takes up the objects and keys of earlier lives.
func (f *Fake) Restore(events []oracle.Event) error {
	f.keys.Restore(events)
	for _, e := range events {
		if e.Kind != oracle.KindEffect {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(e.Details))
		d.UseNumber()
		var done effect
		if err := d.Decode(&done); err != nil {
			return fmt.Errorf("%s: effect in line %d: %w", f.file.Name, e.Seq, err)
		}
		for _, o := range done.Objects {
			plainNumbers(any(o.Fields))
			f.made[o.Kind] = max(f.made[o.Kind], o.Row)
			f.put(o)
		}
	}
	return nil
}

// put adds the object, or replaces it by its new form.
func (f *Fake) put(o object) {
	i := slices.IndexFunc(f.objects, func(x object) bool { return x.Kind == o.Kind && x.Row == o.Row })
	if i < 0 {
		f.objects = append(f.objects, o)
		return
	}
	f.objects[i] = o
}

// read gives values to what the request alone says.
func (f *Fake) read(r *server.Request) (values, error) {
	v := values{
		"method": r.Method, "host": r.Host, "base": r.Scheme + "://" + r.Host, "url": r.Scheme + "://" + r.Host + r.Path, "body": string(r.Body),
		"body_sha256": digest(r.Body), "scope": "",
	}
	v["query"], v["query_all"] = firstOf(r.Query)
	header := map[string]any{}
	for name, list := range r.Header {
		header[strings.ToLower(name)] = strings.Join(list, ", ")
	}
	v["header"] = header
	for _, read := range bodies {
		read(r, v)
	}
	scope, err := f.file.Scope.str(v)
	v["scope"] = scope
	return v, err
}

// route finds the first route that fits, nil for none, and gives values to path and with.
func (f *Fake) route(v values, r *server.Request) (*route, error) {
	for _, one := range f.file.Routes {
		path, fits := one.fits(r.Method, r.Path)
		if !fits {
			continue
		}
		v["path"] = path
		v["with"] = map[string]any{}
		ok, err := one.When.holds(v)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		one.compute(v)
		return one, nil
	}
	return nil, nil
}

// Identity names what the request would change: by its route, else by method and path. A preparing request's begins
// with prepare.
func (f *Fake) Identity(r *server.Request) string {
	v, err := f.read(r)
	var found *route
	if err == nil {
		found, err = f.route(v, r)
	}
	switch {
	case found == nil && (r.Method == http.MethodGet || r.Method == http.MethodHead), found != nil && found.Reads():
		return ""
	case err != nil || found == nil:
		return r.Method + " " + r.Path
	}
	return identity(found, found.Identity, v, r)
}

// Prepares is what the identity of a request begins with that only prepares an effect.
const Prepares = "prepare:"

func identity(found *route, as *text, v values, r *server.Request) string {
	prefix := ""
	if found.Prepares {
		prefix = Prepares
	}
	if as != nil {
		if name, err := as.str(v); err == nil && name != "" {
			return prefix + name
		}
	}
	return prefix + r.Method + " " + r.Path
}

// Serve answers a request. Whatever the file can't compute is a 500 that no file has.
func (f *Fake) Serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	out, err := f.serve(ctx, c)
	if end, ok := errors.AsType[stopped](err); ok {
		return nil, end.error
	}
	if err != nil {
		out = server.JSON(http.StatusInternalServerError, map[string]any{"fake_error": err.Error()})
	}
	return out, nil
}

func (f *Fake) serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	v, err := f.read(c.Request)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	v["now"], v["settings"] = c.Now().UTC(), f.settings
	f.mu.Unlock()
	if f.file.Auth != nil {
		ok, err := f.file.Auth.Unless.holds(v)
		if err != nil {
			return nil, err
		}
		if !ok {
			return f.answer(&f.file.Auth.Answer, v)
		}
	}
	found, err := f.route(v, c.Request)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return server.JSON(http.StatusNotFound, map[string]any{"error": "this fake has no " + c.Method + " " + c.Path}), nil
	case found.Reads():
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.serveRead(found, v)
	}
	return f.serveChange(ctx, found, v, c)
}
