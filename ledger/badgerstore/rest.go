package badgerstore

// rest lets go of what is only kept so that the next commands needn't read it: records
// that lie scattered over the heap hold far more of it than they take.
func (s *Store) rest() {
	s.mutations.empty()
	s.loans.empty()
	s.runs.empty()
	s.items.empty()
	s.deliveries.empty()
	s.bodies.empty()
	s.connectors.empty()
	s.spans.empty()
	s.buffers.drop()
	s.slabs = [2]slab{}
	s.changed.rest()
	s.giving.rest(s.horizon.durable.Load())
	s.gate.rest(s.now())
}
