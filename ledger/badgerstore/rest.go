package badgerstore

// rest lets go of what is only kept so that the next commands needn't read it: records
// that lie scattered over the heap hold far more of it than they take.
func (s *Store) rest() {
	s.mutations.empty()
	s.runs.empty()
	s.items.empty()
	s.deliveries.empty()
	s.bodies.empty()
	s.connectors.empty()
	s.spans.empty()
	s.changed.rest()
	s.giving.want(s.horizon.durable.Load(), false)
}
