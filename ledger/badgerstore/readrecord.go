package badgerstore

import (
	"time"

	"keep-proxy/ledger"
)

// fewRecords is from how many elements on a list of structs is left to the decoder.
const fewRecords = 64

func (r *reader) storedMutation(s *storedMutation) {
	if r.head(cborArray) != 2 {
		r.strange = true
		return
	}
	s.Record = r.mutation()
	if !r.nothing() {
		s.History = r.bytes()
	}
}

func (r *reader) mutation() *ledger.Mutation {
	m := new(ledger.Mutation)
	for f := r.open(); r.next(&f); {
		switch f.now {
		case 1:
			m.Key = r.sum()
		case 2:
			m.ID = r.string()
		case 3:
			m.Version = r.int()
		case 4:
			m.State = ledger.State(r.string())
		case 5:
			m.Committed = r.bool()
		case 6:
			m.ResultState = ledger.ResultState(r.string())
		case 7:
			m.Watching = r.bool()
		case 8:
			m.Connector = r.string()
		case 9:
			m.ConnectorVersion = int(r.int())
		case 10:
			m.ConnectorHash = r.string()
		case 11:
			m.Operation = r.string()
		case 12:
			m.Target = r.string()
		case 13:
			m.Account = r.string()
		case 14:
			m.HostGroup = r.string()
		case 15:
			m.Identity = r.names()
		case 16:
			m.Subkey = r.string()
		default:
			r.payload(m, f.now)
		}
	}
	return m
}

// payload reads a field of what was asked for, and of what came of it in short.
func (r *reader) payload(m *ledger.Mutation, number uint64) {
	switch number {
	case 17:
		m.PayloadDigest = r.string()
	case 18:
		m.SignificantDigest = r.string()
	case 19:
		m.Accepted = r.texts()
	case 20:
		m.Disputed = r.string()
	case 21:
		r.other(&m.Diff)
	case 22:
		m.Marker = r.string()
	case 23:
		m.VendorKey = r.string()
	case 24:
		m.Generation = int(r.int())
	case 25:
		m.Class = ledger.Class(r.string())
	case 26:
		m.Reason = r.string()
	case 81:
		m.Workflow = r.string()
	case 82:
		m.Item = r.string()
	case 83:
		m.Attempt = int(r.int())
	case 84:
		m.Run = r.string()
	default:
		r.times(m, number)
	}
}

// times reads a field of when things were, or are to be.
func (r *reader) times(m *ledger.Mutation, number uint64) {
	switch number {
	case 27:
		m.RetryAfter = r.time()
	case 28:
		m.CreatedAt = r.time()
	case 29:
		m.UpdatedAt = r.time()
	case 30:
		m.NextTryAt = r.time()
	case 31:
		m.RedispatchSince = r.time()
	case 32:
		m.Tries = int(r.int())
	case 33:
		m.ResendTries = int(r.int())
	case 34:
		m.ResendClosed = r.bool()
	case 35:
		m.UnknownSince = r.stamp()
	case 36:
		m.RunningAge = time.Duration(r.int())
	default:
		r.history(m, number)
	}
}

// history reads a field of the policy, and of what was sent, answered, seen and asked.
func (r *reader) history(m *ledger.Mutation, number uint64) {
	switch number {
	case 37:
		m.Policy = r.policy()
	case 38:
		m.Request = r.request()
	case 39:
		m.Result = r.result()
	case 40:
		m.Dispatches = list(r, r.dispatch)
	case 41:
		m.Observations = list(r, r.observation)
	case 42:
		r.other(&m.Escalation)
	case 43:
		r.other(&m.Verification)
	case 44:
		m.Forgotten = r.time()
	case 45:
		m.Kept = r.names()
	case 46:
		r.other(&m.Undo)
	case 47:
		r.other(&m.Obligations)
	case 48:
		m.KeyKnown = time.Duration(r.int())
	case 49:
		m.Dropped = int(r.int())
	case 50:
		m.ConnectorHosts = r.string()
	case 51:
		m.Remade = int(r.int())
	case 52:
		r.other(&m.Displaced)
	default:
		r.strange = true
	}
}

// list reads a list of structs, each by one.
func list[T any](r *reader, one func(*T)) []T {
	n := r.count(cborArray)
	if n > fewRecords {
		r.strange = true
		return nil
	}
	all := make([]T, n)
	for i := range all {
		one(&all[i])
	}
	return all
}

func (r *reader) policy() (p ledger.Policy) {
	for f := r.open(); r.next(&f); {
		switch f.now {
		case 1:
			p.Reconciler = r.bool()
		case 2:
			p.Resend = r.bool()
		case 3:
			p.NativeKey = r.bool()
		case 4:
			p.KeyFormat = r.string()
		case 5:
			p.KeyMaxLength = int(r.int())
		case 6:
			p.KeyWindow = time.Duration(r.int())
		case 7:
			p.BlockScope = ledger.BlockScope(r.string())
		case 8:
			p.OnAbsent = ledger.OnAbsent(r.string())
		case 9:
			p.Settle = time.Duration(r.int())
		case 10:
			p.Confirmations = int(r.int())
		case 11:
			p.Spacing = time.Duration(r.int())
		case 12:
			p.MaxDispatches = int(r.int())
		case 13:
			p.WatchEvery = time.Duration(r.int())
		case 14:
			p.WatchMax = time.Duration(r.int())
		case 15:
			p.WatchClass = ledger.Class(r.string())
		case 16:
			p.ResultLimit = r.int()
		case 17:
			p.Prepares = r.bool()
		case 18:
			p.Natural = r.bool()
		case 20:
			p.Idempotent = r.bool()
		default:
			r.strange = true
		}
	}
	return p
}

func (r *reader) request() (q ledger.Request) {
	for f := r.open(); r.next(&f); {
		switch f.now {
		case 1:
			q.Method = r.string()
		case 2:
			q.URL = r.string()
		case 3:
			q.Header = r.header()
		case 4:
			q.Body = r.body()
		default:
			r.strange = true
		}
	}
	return q
}

func (r *reader) result() *ledger.Result {
	a := new(ledger.Result)
	for f := r.open(); r.next(&f); {
		switch f.now {
		case 1:
			a.Status = int(r.int())
		case 2:
			a.Header = r.header()
		case 3:
			a.Body = r.body()
		case 4:
			a.Source = r.string()
		case 5:
			a.Trailer = r.header()
		default:
			r.strange = true
		}
	}
	return a
}

func (r *reader) body() (b ledger.Body) {
	for f := r.open(); r.next(&f); {
		switch f.now {
		case 1:
			b.SHA256 = r.string()
		case 2:
			b.Size = r.int()
		case 3:
			b.Dropped = r.bool()
		default:
			r.strange = true
		}
	}
	return b
}

func (r *reader) dispatch(d *ledger.Dispatch) {
	for f := r.open(); r.next(&f); {
		switch f.now {
		case 1:
			d.ID = r.string()
		case 2:
			d.Owner = r.string()
		case 3:
			d.Run = r.string()
		case 4:
			d.Generation = int(r.int())
		case 5:
			d.Resend = r.bool()
		case 6:
			d.Redispatch = r.bool()
		case 7:
			d.PayloadDigest = r.string()
		case 8:
			d.ClientKey = r.string()
		case 9:
			d.Started = r.stamp()
		case 10:
			d.Ended = r.stamp()
		case 25:
			d.Gap = int(r.int())
		case 26:
			d.Prepares = r.bool()
		case 27:
			d.Prepared = r.bool()
		case 28:
			d.Gaps = int(r.int())
		default:
			r.end(d, f.now)
		}
	}
}

// end reads a field of how a dispatch ended, and of what was seen on the wire.
func (r *reader) end(d *ledger.Dispatch, number uint64) {
	switch number {
	case 11:
		d.Lost = r.bool()
	case 12:
		d.Verdict = ledger.Verdict(r.string())
	case 13:
		d.Class = ledger.Class(r.string())
	case 14:
		d.Reason = r.string()
	case 15:
		d.Resolved = r.bool()
	case 16:
		d.PassedOn = r.bool()
	case 17:
		d.BytesWritten = r.int()
	case 18:
		d.Head = r.bool()
	case 19:
		d.Status = int(r.int())
	case 20:
		d.BodyComplete = r.bool()
	case 21:
		d.ErrorClass = r.string()
	case 22:
		d.Error = r.string()
	case 23:
		d.Protocol = r.string()
	case 24:
		d.Remote = r.string()
	default:
		r.strange = true
	}
}

func (r *reader) observation(o *ledger.Observation) {
	for f := r.open(); r.next(&f); {
		switch f.now {
		case 1:
			o.At = r.stamp()
		case 2:
			o.Strategy = r.string()
		case 3:
			o.Seen = ledger.Seen(r.string())
		case 4:
			o.Reason = r.string()
		case 5:
			o.Evidence = r.string()
		case 6:
			o.Objects = r.texts()
		case 7:
			o.Strong = r.bool()
		case 8:
			o.Counted = r.bool()
		case 9:
			o.Voided = r.bool()
		default:
			r.strange = true
		}
	}
}

func (r *reader) event(e *ledger.Event) {
	for f := r.open(); r.next(&f); {
		switch f.now {
		case 1:
			e.Seq = r.uint()
		case 2:
			e.At = r.time()
		case 3:
			e.Actor = r.string()
		case 4:
			e.What = r.string()
		case 5:
			e.Why = r.string()
		case 6:
			e.Mutation = r.string()
		case 7:
			e.Dispatch = r.string()
		case 8:
			e.Run = r.string()
		case 9:
			e.Workflow = r.string()
		case 10:
			e.Item = r.string()
		case 11:
			e.From = ledger.State(r.string())
		case 12:
			e.To = ledger.State(r.string())
		case 13:
			e.Evidence = r.string()
		case 14:
			e.Escalation = int(r.int())
		case 15:
			e.EscalationClosed = r.bool()
		default:
			r.strange = true
		}
	}
}

// chainedEvents are the events of one commit, and the hash of the one before the first.
type chainedEvents struct {
	before [32]byte
	block  []chained
}

// storedEvents reads what storedEvents are stored as, event by event.
func (r *reader) storedEvents(s *chainedEvents) {
	if r.head(cborArray) != 2 {
		r.strange = true
		return
	}
	s.before = r.sum()
	n := r.head(cborArray)
	if r.strange || n > manyEvents {
		r.strange = true
		return
	}
	s.block = make([]chained, 0, min(n, uint64(len(r.text)-r.at)/shortEvent+1))
	prev := s.before
	var linked []byte
	for range n {
		from := r.at
		c := chained{prev: prev}
		if r.event(&c.Event); r.strange {
			return
		}
		linked = append(append(linked[:0], prev[:]...), r.text[from:r.at]...)
		c.hash = sum256(linked)
		s.block, prev = append(s.block, c), c.hash
	}
}

// No event has fewer bytes than shortEvent; more than manyEvents are left to the decoder.
const (
	shortEvent = 16
	manyEvents = 1 << 16
)

func (r *reader) delivery(d *ledger.Delivery) {
	for f := r.open(); r.next(&f); {
		switch f.now {
		case 1:
			d.At = r.time()
		case 2:
			d.ClientKey = r.string()
		case 3:
			d.Dispatch = r.string()
		case 4:
			d.State = ledger.State(r.string())
		case 5:
			d.Begun = r.bool()
		default:
			r.strange = true
		}
	}
}
