package badgerstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/fxamacker/cbor/v2"

	"keep-proxy/ledger"
)

const (
	// format is that of the folder and of each value in it. From this one on, a program reads all
	// formats of those before it. Those of formats 1 to 3 were never released.
	format = 4
)

// wrongFormat refuses what has another format; a newer one needs this program, if that is known.
func wrongFormat(what string, found int, needs string) error {
	if found < format {
		return fmt.Errorf("%w: %s has format %d of a build before the first release: begin a new ledger in another folder",
			ledger.ErrFormat, what, found)
	}
	if needs == "" {
		needs = "the program that ran on it last"
	}
	return fmt.Errorf("%w: %s has format %d, and this program reads format %d: use %s, or a newer one", ledger.ErrFormat, what, found, format, needs)
}

// sealSize is the length of the envelope: format, flags, CRC-32C.
const sealSize = 6

// flagSplit marks a value whose content is in parts.
const flagSplit = 1

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	encoder    = mustEncMode()
	decoder    = mustDecMode()
)

// emptySeal is where a seal will be.
var emptySeal [sealSize]byte

// mustEncMode makes equal values equal bytes: fields and keys of maps are in order.
func mustEncMode() cbor.UserBufferEncMode {
	mode, err := cbor.EncOptions{
		Sort: cbor.SortCoreDeterministic, Time: cbor.TimeRFC3339NanoUTC, ShortestFloat: cbor.ShortestFloatNone,
		IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
	}.UserBufferEncMode()
	if err != nil {
		panic(fmt.Sprintf("badgerstore: constant options: %v", err))
	}
	return mode
}

// mustDecMode refuses a field that it doesn't know, and what the encoder never writes.
func mustDecMode() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		// Header fields and error texts are kept as they came: not always UTF-8.
		UTF8: cbor.UTF8DecodeInvalid,
	}.DecMode()
	if err != nil {
		panic(fmt.Sprintf("badgerstore: constant options: %v", err))
	}
	return mode
}

// seal wraps content for storage under key. The checksum covers the key, so that
// values which changed places are found out.
func seal(key, content []byte, flags byte) []byte {
	out := make([]byte, sealSize, sealSize+len(content))
	out = append(out, content...)
	sealIn(key, out, flags)
	return out
}

// sealIn fills the envelope of a value in whose first sealSize bytes it belongs.
func sealIn(key, out []byte, flags byte) {
	out[0], out[1] = format, flags
	binary.LittleEndian.PutUint32(out[2:], checksum(key, out))
}

// checksum covers the key and all of sealed but the checksum itself.
func checksum(key, sealed []byte) uint32 {
	sum := crc32.Update(0, castagnoli, key)
	sum = crc32.Update(sum, castagnoli, sealed[:2])
	return crc32.Update(sum, castagnoli, sealed[sealSize:])
}

// unseal checks a stored value and returns its content, which aliases sealed.
func unseal(key, sealed []byte) (content []byte, flags byte, err error) {
	if len(sealed) < sealSize {
		return nil, 0, damaged(key, "the value is cut")
	}
	if binary.LittleEndian.Uint32(sealed[2:]) != checksum(key, sealed) {
		return nil, 0, damaged(key, "the checksum doesn't match")
	}
	if sealed[0] != format {
		return nil, 0, wrongFormat("value "+keyName(key), int(sealed[0]), "")
	}
	if sealed[1]&^flagSplit != 0 {
		return nil, 0, damaged(key, "the envelope is unknown")
	}
	return sealed[sealSize:], sealed[1], nil
}

func damaged(key []byte, why string) error {
	return fmt.Errorf("%w: value %s: %s", ledger.ErrDamaged, keyName(key), why)
}

// encode appends v to b.
func encode(b *bytes.Buffer, v any) error {
	if err := encoder.MarshalToBuffer(v, b); err != nil {
		return fmt.Errorf("encode %T: %w", v, err)
	}
	return nil
}

// decode reads content into v. Content passed its checksum, so other code wrote what doesn't decode: it is damage
// all the same. An unknown field isn't: a later program wrote it, and nothing is lost.
func decode(key, content []byte, v any) error {
	err := decoder.Unmarshal(content, v)
	if err == nil {
		return nil
	}
	if _, later := errors.AsType[*cbor.UnknownFieldError](err); later {
		return fmt.Errorf("%w: value %s holds what this program doesn't know: use the version that ran on this ledger last, or a newer one",
			ledger.ErrFormat, keyName(key))
	}
	return damaged(key, err.Error())
}

// entryOfMutation is a record with what the store keeps beside it.
type entryOfMutation struct {
	*ledger.Mutation
	history history
}

// storedMutation is how a record is stored: an array.
type storedMutation struct {
	_       struct{} `cbor:",toarray"`
	Record  *ledger.Mutation
	History []byte
}

// decodeMutation also refuses an unknown state.
func decodeMutation(key, content []byte) (e entryOfMutation, err error) {
	var s storedMutation
	if err := decode(key, content, &s); err != nil {
		return entryOfMutation{}, err
	}
	if s.Record == nil || !s.Record.State.Valid() {
		return entryOfMutation{}, damaged(key, "its state is unknown")
	}
	e.Mutation, e.history = s.Record, s.History
	return e, nil
}

// knownRunState reports whether a stored run may be used.
func knownRunState(s ledger.RunState) bool {
	switch s {
	case ledger.RunRunning, ledger.RunFailing, ledger.RunFinished, ledger.RunAborted,
		ledger.RunPausedReconciliation, ledger.RunPausedAttention:
		return true
	}
	return false
}

func decodeRun(key, content []byte) (*ledger.Run, error) {
	r := new(ledger.Run)
	if err := decode(key, content, r); err != nil {
		return nil, err
	}
	if !knownRunState(r.State) {
		return nil, damaged(key, fmt.Sprintf("unknown run state %q", r.State))
	}
	return r, nil
}

func knownItemState(s ledger.ItemState) bool {
	switch s {
	case ledger.ItemOpen, ledger.ItemDone, ledger.ItemFailed, ledger.ItemNeedsAttention, ledger.ItemSkipped:
		return true
	}
	return false
}

func decodeItem(key, content []byte) (*ledger.Item, error) {
	i := new(ledger.Item)
	if err := decode(key, content, i); err != nil {
		return nil, err
	}
	if !knownItemState(i.State) {
		return nil, damaged(key, fmt.Sprintf("unknown item state %q", i.State))
	}
	return i, nil
}

// isDamage reports whether err means that stored content can't be trusted.
func isDamage(err error) bool {
	return errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrFormat)
}
