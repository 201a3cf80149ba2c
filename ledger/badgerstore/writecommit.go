package badgerstore

// What each commit stores beside what its commands put.
var (
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
