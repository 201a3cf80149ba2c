package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Advice is a value that is allowed but does less than it seems to.
type Advice struct {
	// Key is the key in dotted form.
	Key string
	// Value is the value in force.
	Value string
	// Text says what it does and does not do.
	Text string
}

// Advise lists the values of c whose effect depends on rules: reconcile numbers
// that are weaker than the defaults take effect only where a rule declares
// bounds.
func Advise(c Config) []Advice {
	d := Default().Reconcile
	list := weaker(nil, "reconcile.settle", c.Reconcile.Settle, d.Settle)
	list = weaker(list, "reconcile.absent_confirmations", c.Reconcile.AbsentConfirmations, d.AbsentConfirmations)
	list = weaker(list, "reconcile.absent_spacing", c.Reconcile.AbsentSpacing, d.AbsentSpacing)
	for i, s := range c.Connectors.Settings {
		for _, name := range slices.Sorted(maps.Keys(s.Overrides)) {
			o := s.Overrides[name]
			key := indexed("connectors.settings", i) + ".overrides." + name
			list = weaker(list, key+".settle", o.Settle, d.Settle)
			list = weaker(list, key+".absent_confirmations", o.AbsentConfirmations, d.AbsentConfirmations)
			list = weaker(list, key+".absent_spacing", o.AbsentSpacing, d.AbsentSpacing)
		}
	}
	return list
}

// weaker adds advice when v is given and below the default.
func weaker[T cmp.Ordered](list []Advice, key string, v, standard T) []Advice {
	var unset T
	if v == unset || v >= standard {
		return list
	}
	return append(list, Advice{
		Key:   key,
		Value: short(v),
		Text:  fmt.Sprintf("weaker than the default %s, so it works only for rules that declare bounds; elsewhere %s holds", short(standard), short(standard)),
	})
}
