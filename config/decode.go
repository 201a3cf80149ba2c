package config

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"keep-proxy/internal/strictyaml"
)

// entry is one configuration key, and the field that it goes to.
type entry struct {
	path  string
	field reflect.StructField
	// index leads from a Config to the field.
	index []int
}

// entries lists every key of this version, in the order of Config's fields: those with the tag key.
// The tag read names a reader for texts that mean more than their type says.
var entries = sync.OnceValue(func() []entry { return entriesOf(reflect.TypeFor[Config](), "", nil) })

func entriesOf(section reflect.Type, path string, index []int) (all []entry) {
	for field := range section.Fields() {
		name, keyed := field.Tag.Lookup("key")
		if !keyed {
			continue
		}
		e := entry{strictyaml.Join(path, name), field, slices.Concat(index, field.Index)}
		if field.Type.Kind() == reflect.Struct && readers[field.Type] == nil && field.Type != reflect.TypeFor[Bundled]() {
			all = append(all, entriesOf(field.Type, e.path, e.index)...)
		} else {
			all = append(all, e)
		}
	}
	return all
}

// in is the key's field of a Config.
func (e entry) in(c *Config) reflect.Value { return reflect.ValueOf(c).Elem().FieldByIndex(e.index) }

// list says that one environment variable holds several values, parted by commas.
func (e entry) list() bool {
	return e.field.Type == reflect.TypeFor[[]string]() || e.field.Type == reflect.TypeFor[Bundled]()
}

// fileOnly says that the key is a list of maps, which only a file can give.
func (e entry) fileOnly() bool { return e.field.Type.Kind() == reflect.Slice && !e.list() }

// later are keys that belong to the format and to no version yet.
var later = map[reflect.Type][]string{
	reflect.TypeFor[Override](): {"drift"},
}

// decoder reads one source into typed values.
type decoder struct {
	strictyaml.Reader
	report *report
	source string
	base   string // the folder that relative paths are taken from
}

func newDecoder(r *report, source, base string) *decoder {
	d := &decoder{report: r, source: source, base: base}
	d.Report = func(code string, at strictyaml.Place, problem, fix string) {
		where := origin{source: source, line: at.Line, column: at.Column, value: at.Value}
		r.broken[at.Key] = r.broken[at.Key] || code == strictyaml.CodeType || code == strictyaml.CodeSyntax
		r.add(at.Key, where, &fault{problem, fix})
	}
	return d
}

// document reads a file's one document and returns the values it gives, by key. What can't be read
// is reported and left out.
func (d *decoder) document(data []byte) map[string]any {
	values := map[string]any{}
	if root, ok := d.Document(data); ok {
		d.section("", root, values)
	}
	return values
}

// section reads the map of one section into values. A section without a value is an empty one, so
// that its keys may all be commented out.
func (d *decoder) section(path string, v strictyaml.Value, values map[string]any) {
	if !v.Given() || v.IsNull() && d.Plain(v) {
		return
	}
	level := strictyaml.Level{Name: path, Elsewhere: elsewhere}
	if path == "" {
		level.Name = "the configuration"
	}
	leaves := map[string]entry{}
	for _, e := range entries() {
		rest, below := strings.CutPrefix(e.path, path+".")
		if path == "" {
			rest, below = e.path, true
		}
		name, _, deeper := strings.Cut(rest, ".")
		if below && !slices.Contains(level.Known, name) {
			level.Known = append(level.Known, name)
		}
		if below && !deeper {
			leaves[name] = e
		}
	}
	d.note(v)
	m, _ := d.Map(v, level)
	for _, name := range level.Known {
		e, leaf := leaves[name]
		switch at := m.At(name); {
		case !at.Given():
		case !leaf:
			d.section(at.Key, at, values)
		default:
			into := reflect.New(e.field.Type).Elem()
			if d.value(at, into, e.field.Tag) {
				values[e.path] = into.Interface()
			}
		}
	}
}

// elsewhere finds the key of another section that has this name.
func elsewhere(name string) string {
	for _, e := range entries() {
		if strings.HasSuffix(e.path, "."+name) {
			return e.path
		}
	}
	return ""
}

// note records where a value stands.
func (d *decoder) note(v strictyaml.Value) {
	at := v.Place()
	d.report.origins[at.Key] = origin{source: d.source, line: at.Line, column: at.Column, value: at.Value}
}

// value reads a value into a field; false if that can't be.
func (d *decoder) value(v strictyaml.Value, into reflect.Value, tag reflect.StructTag) bool {
	d.note(v)
	if bundled, ok := reflect.TypeAssert[*Bundled](into.Addr()); ok {
		if v.Kind == yaml.SequenceNode {
			return d.elements(v, reflect.ValueOf(&bundled.Names).Elem(), tag)
		}
		return d.scalar(v, into, tag)
	}
	if p, ok := reflect.TypeAssert[*Parameter](into.Addr()); ok {
		p.List = v.Kind == yaml.SequenceNode
		for _, item := range d.OneOrMore(v) {
			s, one := d.Scalar(item)
			p.Texts, ok = append(p.Texts, s), ok && one
		}
		return ok
	}
	switch kind := into.Kind(); {
	case readers[into.Type()] != nil:
		return d.scalar(v, into, tag)
	case kind == reflect.Pointer:
		one := reflect.New(into.Type().Elem())
		ok := d.value(v, one.Elem(), tag)
		into.Set(one)
		return ok
	case kind == reflect.Slice:
		return d.elements(v, into, tag)
	case kind == reflect.Map:
		into.Set(reflect.MakeMap(into.Type()))
		d.Members(v, func(name string, _, member strictyaml.Value) {
			one := reflect.New(into.Type().Elem()).Elem()
			d.value(member, one, "")
			into.SetMapIndex(reflect.ValueOf(name), one)
		})
		return true
	default:
		d.fields(v, into)
		return true
	}
}

// elements reads a list.
func (d *decoder) elements(v strictyaml.Value, into reflect.Value, tag reflect.StructTag) bool {
	items, ok := d.List(v)
	for _, item := range items {
		one := reflect.New(into.Type().Elem()).Elem()
		ok = d.value(item, one, tag) && ok
		into.Set(reflect.Append(into, one))
	}
	return ok
}

// fields reads a map whose keys are those of a struct.
func (d *decoder) fields(v strictyaml.Value, into reflect.Value) {
	level := strictyaml.Level{Name: v.Key, Later: later[into.Type()]}
	for field := range into.Type().Fields() {
		level.Known = append(level.Known, field.Tag.Get("key"))
	}
	c, credentials := reflect.TypeAssert[*Credentials](into.Addr())
	if credentials {
		c.Use = UseReconcile
	}
	m, _ := d.Map(v, level)
	for field, value := range into.Fields() {
		if at := m.At(field.Tag.Get("key")); at.Given() {
			d.value(at, value, field.Tag)
		}
	}
	if credentials {
		c.fill(m.Has("cache"))
	}
}

// scalar reads one value from its text. What isn't text must be written as what it is.
func (d *decoder) scalar(v strictyaml.Value, into reflect.Value, tag reflect.StructTag) bool {
	s, ok := d.Scalar(v)
	if !ok {
		return false
	}
	if v.Tag != "!!str" && textAlone(into, tag) {
		d.Fail(strictyaml.CodeType, v, "a number or boolean where text is expected", "put it in quotes")
		return false
	}
	return d.text(v.Key, s, into, tag)
}

// textAlone reports whether a value must be text. Of a digest and of verify_on_replay the text
// decides: off is what some take for false.
func textAlone(into reflect.Value, tag reflect.StructTag) bool {
	isText := into.Kind() == reflect.String || into.Type() == reflect.TypeFor[Secret]()
	return isText && into.Type() != reflect.TypeFor[Verify]() && tag.Get("read") != "digest"
}

// text reads one value from its text, whichever source it came from.
func (d *decoder) text(key, s string, into reflect.Value, tag reflect.StructTag) bool {
	read := readers[into.Type()]
	if named := textReaders[tag.Get("read")]; named != nil {
		read = named
	}
	v, f := read(d.base, s)
	if f != nil {
		d.report.unreadable(key, f)
		return false
	}
	into.Set(reflect.ValueOf(v).Convert(into.Type()))
	return true
}

// texts reads the form of the environment and of flags; values that are no list give the last one.
func (d *decoder) texts(e entry, values []string, into reflect.Value) bool {
	joined := values[len(values)-1]
	if e.list() {
		joined = strings.Join(values, ",")
	}
	d.report.origins[e.path] = origin{source: d.source, value: joined}
	list := into
	if bundled, ok := reflect.TypeAssert[*Bundled](into.Addr()); ok {
		if _, f := readBool("", joined); f == nil {
			return d.text(e.path, joined, into, e.field.Tag)
		}
		list = reflect.ValueOf(&bundled.Names).Elem()
	}
	if !e.list() {
		return d.text(e.path, joined, into, e.field.Tag)
	}
	ok := true
	for i, s := range values {
		key, one := strictyaml.Index(e.path, i), reflect.New(list.Type().Elem()).Elem()
		d.report.origins[key] = origin{source: d.source, value: s}
		ok = d.text(key, s, one, e.field.Tag) && ok
		list.Set(reflect.Append(list, one))
	}
	return ok
}

// given reads a key's texts into values.
func (d *decoder) given(e entry, texts []string, values map[string]any) {
	into := reflect.New(e.field.Type).Elem()
	if d.texts(e, texts, into) {
		values[e.path] = into.Interface()
	}
}
