package badgerstore

// tip is the end of the ledger: of its commits, and of its events.
type tip struct {
	// Commit counts commits from 1 without gaps.
	Commit uint64 `cbor:"1,keyasint"`
	// Seq and Hash are those of the last event, zero before the first.
	Seq  uint64   `cbor:"2,keyasint"`
	Hash [32]byte `cbor:"3,keyasint"`
	At   int64    `cbor:"4,keyasint"`
}
