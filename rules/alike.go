package rules

import "slices"

// MayBeOf reports whether the object, which this try found, may be of another mutation of the
// same operation as well, whose environment is given: unless the rule's ours says that it is
// not. What that can't be asked about, or was told with the help of steps about this
// mutation, may be.
func (a *Asking) MayBeOf(other Env, objectID string) bool {
	i := slices.IndexFunc(a.found, func(o object) bool { return o.id == objectID })
	if i < 0 || other.Request == nil || len(a.steps) > 0 {
		return true
	}
	s := a.whole.op.scope(other)
	s.resp, s.found = a.found[i].page, a.found[i].item
	ours, err := a.probe.ours.test(s)
	return err != nil || ours
}
