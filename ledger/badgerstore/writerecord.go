package badgerstore

import (
	"keep-proxy/ledger"
)

// The types below are written field by field, in the order in which they are declared.
// A field that was added to one and not here is not lost: it is left to the encoder, after
// the others.
var (
	moreOfMutation    = more[ledger.Mutation](52)
	moreOfScope       = more[ledger.Scope](0, 81, 82, 83, 84)
	moreOfPolicy      = more[ledger.Policy](18, 20)
	moreOfRequest     = more[ledger.Request](4)
	moreOfResult      = more[ledger.Result](5)
	moreOfBody        = more[ledger.Body](3)
	moreOfDispatch    = more[ledger.Dispatch](28)
	moreOfObservation = more[ledger.Observation](9)
	moreOfEvent       = more[ledger.Event](15)
	moreOfDelivery    = more[ledger.Delivery](5)
)

func (w *writer) storedMutation(s *storedMutation) {
	w.head(cborArray, 2)
	w.mutation(s.Record)
	if s.History == nil {
		w.null()
		return
	}
	w.bytes(s.History)
}

func (w *writer) mutation(m *ledger.Mutation) {
	if m == nil {
		w.null()
		return
	}
	f := w.begin()
	f.field(1).bytes(m.Key[:])
	f.field(2).text(m.ID)
	f.field(3).int(m.Version)
	f.field(4).text(string(m.State))
	f.someBool(5, m.Committed)
	f.someText(6, string(m.ResultState))
	f.someBool(7, m.Watching)
	f.field(8).text(m.Connector)
	f.field(9).int(int64(m.ConnectorVersion))
	f.field(10).text(m.ConnectorHash)
	f.field(11).text(m.Operation)
	f.someText(12, m.Target)
	f.someText(13, m.Account)
	f.someText(14, m.HostGroup)
	if len(m.Identity) > 0 {
		f.field(15).names(m.Identity)
	}
	f.someText(16, m.Subkey)
	f.field(81).text(m.Workflow)
	f.field(82).text(m.Item)
	f.field(83).int(int64(m.Attempt))
	f.someText(84, m.Run)
	f.more(moreOfScope, &m.Scope)
	f.payload(m)
	f.field(28).time(m.CreatedAt)
	f.field(29).time(m.UpdatedAt)
	f.someTime(30, m.NextTryAt)
	f.someTime(31, m.RedispatchSince)
	f.someInt(32, int64(m.Tries))
	f.someInt(33, int64(m.ResendTries))
	f.someBool(34, m.ResendClosed)
	if m.UnknownSince != (ledger.Stamp{}) {
		f.field(35).stamp(m.UnknownSince)
	}
	f.someInt(36, int64(m.RunningAge))
	f.history(m)
	f.someText(50, m.ConnectorHosts)
	f.someInt(51, int64(m.Remade))
	if len(m.Displaced) > 0 {
		f.field(52).other(m.Displaced)
	}
	f.more(moreOfMutation, m)
	f.end()
}

// payload writes what was asked for, and what came of it in short.
func (f *fields) payload(m *ledger.Mutation) {
	f.field(17).text(m.PayloadDigest)
	f.field(18).text(m.SignificantDigest)
	if len(m.Accepted) > 0 {
		f.field(19).texts(m.Accepted)
	}
	f.someText(20, m.Disputed)
	if m.Diff != nil {
		f.field(21).other(m.Diff)
	}
	f.someText(22, m.Marker)
	f.someText(23, m.VendorKey)
	f.field(24).int(int64(m.Generation))
	f.someText(25, string(m.Class))
	f.someText(26, m.Reason)
	f.someTime(27, m.RetryAfter)
}

// history writes the policy, and what was sent, answered, seen and asked.
func (f *fields) history(m *ledger.Mutation) {
	f.field(37).policy(&m.Policy)
	f.field(38).request(&m.Request)
	if m.Result != nil {
		f.field(39).result(m.Result)
	}
	if len(m.Dispatches) > 0 {
		f.field(40).head(cborArray, uint64(len(m.Dispatches)))
		for i := range m.Dispatches {
			f.dispatch(&m.Dispatches[i])
		}
	}
	if len(m.Observations) > 0 {
		f.field(41).head(cborArray, uint64(len(m.Observations)))
		for i := range m.Observations {
			f.observation(&m.Observations[i])
		}
	}
	if m.Escalation != nil {
		f.field(42).other(m.Escalation)
	}
	if m.Verification != nil {
		f.field(43).other(m.Verification)
	}
	f.someTime(44, m.Forgotten)
	if len(m.Kept) > 0 {
		f.field(45).names(m.Kept)
	}
	if m.Undo != nil {
		f.field(46).other(m.Undo)
	}
	if len(m.Obligations) > 0 {
		f.field(47).other(m.Obligations)
	}
	f.someInt(48, int64(m.KeyKnown))
	f.someInt(49, int64(m.Dropped))
}

func (w *writer) policy(p *ledger.Policy) {
	f := w.begin()
	f.field(1).bool(p.Reconciler)
	f.someBool(2, p.Resend)
	f.someBool(3, p.NativeKey)
	f.someText(4, p.KeyFormat)
	f.someInt(5, int64(p.KeyMaxLength))
	f.someInt(6, int64(p.KeyWindow))
	f.field(7).text(string(p.BlockScope))
	f.field(8).text(string(p.OnAbsent))
	f.field(9).int(int64(p.Settle))
	f.field(10).int(int64(p.Confirmations))
	f.field(11).int(int64(p.Spacing))
	f.someInt(12, int64(p.MaxDispatches))
	f.someInt(13, int64(p.WatchEvery))
	f.someInt(14, int64(p.WatchMax))
	f.someText(15, string(p.WatchClass))
	f.someInt(16, p.ResultLimit)
	f.someBool(17, p.Prepares)
	f.someBool(18, p.Natural)
	f.someBool(20, p.Idempotent)
	f.more(moreOfPolicy, p)
	f.end()
}

func (w *writer) request(r *ledger.Request) {
	f := w.begin()
	f.field(1).text(r.Method)
	f.field(2).text(r.URL)
	if len(r.Header) > 0 {
		f.field(3).header(r.Header)
	}
	f.field(4).body(&r.Body)
	f.more(moreOfRequest, r)
	f.end()
}

func (w *writer) result(r *ledger.Result) {
	f := w.begin()
	f.field(1).int(int64(r.Status))
	if len(r.Header) > 0 {
		f.field(2).header(r.Header)
	}
	f.field(3).body(&r.Body)
	f.someText(4, r.Source)
	if len(r.Trailer) > 0 {
		f.field(5).header(r.Trailer)
	}
	f.more(moreOfResult, r)
	f.end()
}

func (w *writer) body(b *ledger.Body) {
	f := w.begin()
	f.someText(1, b.SHA256)
	f.someInt(2, b.Size)
	f.someBool(3, b.Dropped)
	f.more(moreOfBody, b)
	f.end()
}

func (w *writer) dispatch(d *ledger.Dispatch) {
	f := w.begin()
	f.field(1).text(d.ID)
	f.field(2).text(d.Owner)
	f.someText(3, d.Run)
	f.field(4).int(int64(d.Generation))
	f.someBool(5, d.Resend)
	f.someBool(6, d.Redispatch)
	f.field(7).text(d.PayloadDigest)
	f.someInt(25, int64(d.Gap))
	f.someText(8, d.ClientKey)
	f.field(9).stamp(d.Started)
	if d.Ended != (ledger.Stamp{}) {
		f.field(10).stamp(d.Ended)
	}
	f.someBool(11, d.Lost)
	f.someText(12, string(d.Verdict))
	f.someText(13, string(d.Class))
	f.someText(14, d.Reason)
	f.someBool(15, d.Resolved)
	f.someBool(16, d.PassedOn)
	f.field(17).int(d.BytesWritten)
	f.field(18).bool(d.Head)
	f.someInt(19, int64(d.Status))
	f.field(20).bool(d.BodyComplete)
	f.someText(21, d.ErrorClass)
	f.someText(22, d.Error)
	f.someText(23, d.Protocol)
	f.someText(24, d.Remote)
	f.someBool(26, d.Prepares)
	f.someBool(27, d.Prepared)
	f.someInt(28, int64(d.Gaps))
	f.more(moreOfDispatch, d)
	f.end()
}

func (w *writer) observation(o *ledger.Observation) {
	f := w.begin()
	f.field(1).stamp(o.At)
	f.field(2).text(o.Strategy)
	f.field(3).text(string(o.Seen))
	f.someText(4, o.Reason)
	f.someText(5, o.Evidence)
	if len(o.Objects) > 0 {
		f.field(6).texts(o.Objects)
	}
	f.someBool(7, o.Strong)
	f.someBool(8, o.Counted)
	f.someBool(9, o.Voided)
	f.more(moreOfObservation, o)
	f.end()
}

func (w *writer) event(e *ledger.Event) {
	f := w.begin()
	f.field(1).head(cborUint, e.Seq)
	f.field(2).time(e.At)
	f.field(3).text(e.Actor)
	f.field(4).text(e.What)
	f.someText(5, e.Why)
	f.someText(6, e.Mutation)
	f.someText(7, e.Dispatch)
	f.someText(8, e.Run)
	f.someText(9, e.Workflow)
	f.someText(10, e.Item)
	f.someText(11, string(e.From))
	f.someText(12, string(e.To))
	f.someText(13, e.Evidence)
	f.someInt(14, int64(e.Escalation))
	f.someBool(15, e.EscalationClosed)
	f.more(moreOfEvent, e)
	f.end()
}

func (w *writer) delivery(d *ledger.Delivery) {
	f := w.begin()
	f.field(1).time(d.At)
	f.someText(2, d.ClientKey)
	f.someText(3, d.Dispatch)
	f.someText(4, string(d.State))
	f.someBool(5, d.Begun)
	f.more(moreOfDelivery, d)
	f.end()
}

// stamp writes a stamp as ledger.Stamp.MarshalBinary does.
func (w *writer) stamp(s ledger.Stamp) {
	w.head(cborBytes, uint64(s.BinarySize()))
	w.b, _ = s.AppendBinary(w.b) // It has no error to tell.
}

func (w *writer) texts(all []string) {
	if all == nil {
		w.null()
		return
	}
	w.head(cborArray, uint64(len(all)))
	for _, s := range all {
		w.text(s)
	}
}

func (w *writer) names(names map[string]string) {
	w.head(cborMap, uint64(len(names)))
	for name, value := range names {
		w.text(name)
		w.text(value)
	}
}

func (w *writer) header(h ledger.Header) {
	w.head(cborMap, uint64(len(h)))
	for name, values := range h {
		w.text(name)
		w.texts(values)
	}
}
