package badgerstore

// What each commit stores beside what its commands put.
var (
	moreOfTip      = more[tip](5)
	moreOfCommit   = more[storedCommit](2)
	moreOfHighMark = more[highMark](2)
	moreOfBodyHead = more[bodyHead](4)
)

func (w *writer) storedEvents(s *storedEvents) {
	w.head(cborArray, 2)
	w.bytes(s.Before[:])
	w.head(cborArray, uint64(len(s.Events)))
	for _, e := range s.Events {
		w.b = append(w.b, e...) // as the writer has it
	}
}

func (w *writer) storedCommit(c *storedCommit) {
	f := w.begin()
	f.field(1).tip(&c.Tip)
	f.field(2).bytes(c.Prev[:])
	f.more(moreOfCommit, c)
	f.end()
}

func (w *writer) tip(t *tip) {
	f := w.begin()
	f.field(1).head(cborUint, t.Commit)
	f.field(2).bytes(t.Link[:])
	f.field(3).head(cborUint, t.Seq)
	f.field(4).bytes(t.Hash[:])
	f.field(5).int(t.At)
	f.more(moreOfTip, t)
	f.end()
}

func (w *writer) highMark(m *highMark) {
	f := w.begin()
	f.field(1).text(m.ID)
	f.field(2).tip(&m.Tip)
	f.more(moreOfHighMark, m)
	f.end()
}

func (w *writer) bodyHead(h *bodyHead) {
	f := w.begin()
	f.field(1).int(h.Size)
	if len(h.Inline) > 0 {
		f.field(2).bytes(h.Inline)
	}
	f.someBool(3, h.File)
	f.someBool(4, h.Lost)
	f.more(moreOfBodyHead, h)
	f.end()
}
