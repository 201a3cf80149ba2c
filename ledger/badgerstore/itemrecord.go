package badgerstore

import (
	"slices"

	"keep-proxy/ledger"
)

// itemFields are the fields of an item, which have names instead of numbers, in the order
// in which they are stored.
var itemFields = []string{
	"id", "version", "workflow", "item", "state", "attempt", "title", "reason", "cause", "active_run", "shared",
	"opened_at", "updated_at", "changes", "rules", "drifts", "gaps",
}

// moreOfItem are fields that the writer doesn't know.
var moreOfItem = slices.DeleteFunc(more[ledger.Item](0), func(u unwritten) bool {
	name, _ := u.key.(string)
	return slices.Contains(itemFields, name)
})

// named begins the field with this name.
func (f *fields) named(name string) *writer {
	f.n++
	f.text(name)
	return f.writer
}

func (f *fields) someNamed(name, s string) {
	if s != "" {
		f.named(name).text(s)
	}
}

func (w *writer) item(i *ledger.Item) {
	f := w.begin()
	f.named("id").text(i.ID)
	f.named("version").int(i.Version)
	f.named("workflow").text(i.Workflow)
	f.named("item").text(i.Item)
	f.named("state").text(string(i.State))
	f.named("attempt").int(int64(i.Attempt))
	f.someNamed("title", i.Title)
	f.someNamed("reason", i.Reason)
	f.someNamed("cause", i.Cause)
	f.someNamed("active_run", i.ActiveRun)
	if i.Shared {
		f.named("shared").bool(true)
	}
	f.named("opened_at").time(i.OpenedAt)
	f.named("updated_at").time(i.UpdatedAt)
	if len(i.Changes) > 0 {
		f.named("changes").other(i.Changes)
	}
	if len(i.Rules) > 0 {
		f.named("rules").rules(i.Rules)
	}
	if len(i.Drifts) > 0 {
		f.named("drifts").texts(i.Drifts)
	}
	if i.Gaps != 0 {
		f.named("gaps").int(int64(i.Gaps))
	}
	f.more(moreOfItem, i)
	f.end()
}

func (w *writer) rules(all []ledger.ItemRule) {
	w.head(cborArray, uint64(len(all)))
	for i := range all {
		f := w.begin()
		f.named("connector").text(all[i].Connector)
		f.named("operation").text(all[i].Operation)
		f.named("hash").text(all[i].Hash)
		if all[i].Hosts != "" {
			f.named("hosts").text(all[i].Hosts)
		}
		f.more(moreOfItemRule, &all[i])
		f.end()
	}
}

var moreOfItemRule = slices.DeleteFunc(more[ledger.ItemRule](0), func(u unwritten) bool {
	return u.key == "connector" || u.key == "operation" || u.key == "hash" || u.key == "hosts"
})

// item reads fields in their order, so that none comes twice.
func (r *reader) item(i *ledger.Item) {
	at := -1
	for range r.count(cborMap) {
		name := r.string()
		step := slices.Index(itemFields[at+1:], name)
		if step < 0 || r.strange {
			r.strange = true
			return
		}
		at += step + 1
		r.itemField(i, name)
	}
}

func (r *reader) itemField(i *ledger.Item, name string) {
	switch name {
	case "id":
		i.ID = r.string()
	case "version":
		i.Version = r.int()
	case "workflow":
		i.Workflow = r.string()
	case "item":
		i.Item = r.string()
	case "state":
		i.State = ledger.ItemState(r.string())
	case "attempt":
		i.Attempt = int(r.int())
	case "title":
		i.Title = r.string()
	case "reason":
		i.Reason = r.string()
	case "cause":
		i.Cause = r.string()
	case "active_run":
		i.ActiveRun = r.string()
	case "shared":
		i.Shared = r.bool()
	case "gaps":
		i.Gaps = int(r.int())
	case "opened_at":
		i.OpenedAt = r.time()
	case "updated_at":
		i.UpdatedAt = r.time()
	case "changes":
		r.other(&i.Changes)
	case "rules":
		i.Rules = list(r, r.itemRule)
	case "drifts":
		i.Drifts = r.texts()
	default:
		r.strange = true
	}
}

func (r *reader) itemRule(p *ledger.ItemRule) {
	const fields, withHosts = 3, 4
	n := r.head(cborMap)
	if n != fields && n != withHosts {
		r.strange = true
	}
	r.expect("connector")
	p.Connector = r.string()
	r.expect("operation")
	p.Operation = r.string()
	r.expect("hash")
	p.Hash = r.string()
	if n == withHosts {
		r.expect("hosts")
		p.Hosts = r.string()
	}
}

// expect gives up where the next name is another one.
func (r *reader) expect(name string) {
	if r.string() != name {
		r.strange = true
	}
}
