package badgerstore

import (
	"encoding/binary"
	"math"
	"time"

	"keep-proxy/ledger"
)

// reader reads what the writer writes, field by field: going through a record by
// reflection costs several times as much. It knows one form of each value. Where content
// has another one, which may be right all the same, it gives up, and the decoder of
// codec.go reads the whole of it: what is damage is said there alone. So it must not
// accept anything that the decoder refuses, or reads otherwise.
type reader struct {
	// content is what is read, and text the same: the strings that are read are parts of
	// it, so that a record takes one allocation for all of its own.
	content []byte
	text    string
	at      int
	// strange says that something isn't as the writer writes it. Nothing is read on.
	strange bool
	// room is where the next lists of texts go.
	room []string
}

// manyElements is from how many elements on a list or map is left to the decoder.
const manyElements = 256

func newReader(content []byte) *reader { return &reader{content: content, text: string(content)} }

// whole reports whether all of the content was read.
func (r *reader) whole() bool { return !r.strange && r.at == len(r.text) }

// head reads the head of a data item (RFC 8949 §3) of this major type.
func (r *reader) head(major byte) uint64 {
	const majors = 0xe0
	if r.at >= len(r.text) || r.text[r.at]&majors != major {
		r.strange = true
		return 0
	}
	argument := r.text[r.at] &^ majors
	r.at++
	if argument < cborInline {
		return uint64(argument)
	}
	width := 1 << (argument - cborInline)
	if width > 8 || len(r.text)-r.at < width {
		r.strange = true
		return 0
	}
	var n uint64
	for _, c := range []byte(r.text[r.at : r.at+width]) {
		n = n<<8 | uint64(c)
	}
	r.at += width
	return n
}

// part reads a string of this major type.
func (r *reader) part(major byte) string {
	n := r.head(major)
	if r.strange || n > uint64(len(r.text)-r.at) {
		r.strange = true
		return ""
	}
	from := r.at
	r.at += int(n)
	return r.text[from:r.at]
}

func (r *reader) string() string { return r.part(cborText) }

// bytes reads bytes, of which it makes a copy.
func (r *reader) bytes() []byte { return []byte(r.part(cborBytes)) }

// sum reads 32 bytes.
func (r *reader) sum() (sum [32]byte) {
	if copy(sum[:], r.part(cborBytes)) != len(sum) {
		r.strange = true
	}
	return sum
}

// nothing reads a null, if one comes.
func (r *reader) nothing() bool {
	if r.at >= len(r.text) || r.text[r.at] != cborNull {
		return false
	}
	r.at++
	return true
}

func (r *reader) uint() uint64 { return r.head(cborUint) }

func (r *reader) int() int64 {
	major := byte(cborUint)
	if r.at < len(r.text) && r.text[r.at]&0xe0 == cborNint {
		major = cborNint
	}
	n := r.head(major)
	if n > math.MaxInt64 {
		r.strange = true
		return 0
	}
	if major == cborNint {
		return -1 - int64(n)
	}
	return int64(n)
}

func (r *reader) bool() bool {
	if r.at >= len(r.text) || r.text[r.at] != cborTrue && r.text[r.at] != cborFalse {
		r.strange = true
		return false
	}
	r.at++
	return r.text[r.at-1] == cborTrue
}

// count reads the head of a list or map that isn't empty.
func (r *reader) count(major byte) int {
	n := r.head(major)
	if n == 0 || n > manyElements {
		r.strange = true
	}
	if r.strange {
		return 0
	}
	return int(n)
}

// texts reads a list of texts.
func (r *reader) texts() []string {
	if r.nothing() {
		return nil
	}
	n := int(min(r.head(cborArray), manyElements+1))
	if n > manyElements || r.strange {
		r.strange = true
		return nil
	}
	if n == 0 {
		return []string{}
	}
	if n > len(r.room) {
		r.room = make([]string, max(n, fewTexts))
	}
	all := r.room[:n:n]
	r.room = r.room[n:]
	for i := range all {
		all[i] = r.string()
	}
	return all
}

// fewTexts is how many texts get room at once: what a message has header fields.
const fewTexts = 8

func (r *reader) names() map[string]string {
	n := r.count(cborMap)
	names := make(map[string]string, n)
	for range n {
		name := r.string()
		names[name] = r.string()
	}
	r.distinct(len(names), n)
	return names
}

func (r *reader) header() ledger.Header {
	n := r.count(cborMap)
	h := make(ledger.Header, n)
	for range n {
		name := r.string()
		h[name] = r.texts()
	}
	r.distinct(len(h), n)
	return h
}

// distinct gives up where a map had a name twice.
func (r *reader) distinct(found, listed int) {
	if found != listed {
		r.strange = true
	}
}

// other leaves the next value to the decoder; v points at where it belongs.
func (r *reader) other(v any) {
	if r.strange {
		return
	}
	rest, err := decoder.UnmarshalFirst(r.content[r.at:], v)
	if err != nil {
		r.strange = true
		return
	}
	r.at = len(r.content) - len(rest)
}

// stamp reads what ledger.Stamp.MarshalBinary writes.
func (r *reader) stamp() ledger.Stamp {
	const size = 8 + 4 + 8 + 8
	s := r.part(cborBytes)
	if len(s) < size {
		r.strange = true
		return ledger.Stamp{}
	}
	var fixed [size]byte
	copy(fixed[:], s)
	nanos := binary.BigEndian.Uint32(fixed[8:])
	if nanos >= 1e9 {
		r.strange = true
		return ledger.Stamp{}
	}
	return ledger.Stamp{
		Wall:   time.Unix(int64(binary.BigEndian.Uint64(fixed[:])), int64(nanos)).UTC(),
		Mono:   time.Duration(binary.BigEndian.Uint64(fixed[12:])),
		Boot:   time.Duration(binary.BigEndian.Uint64(fixed[20:])),
		BootID: s[size:],
	}
}

// time reads a moment in UTC as RFC 3339 has it, or null.
func (r *reader) time() time.Time {
	if r.nothing() {
		return time.Time{}
	}
	const seconds = "2006-01-02T15:04:05"
	s := r.string()
	if len(s) <= len(seconds) || len(s) > len(seconds+".999999999Z") || s[len(s)-1] != 'Z' ||
		s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		r.strange = true
		return time.Time{}
	}
	year, month, day := r.digits(s[:4]), r.digits(s[5:7]), r.digits(s[8:10])
	hour, minute, second := r.digits(s[11:13]), r.digits(s[14:16]), r.digits(s[17:19])
	at := time.Date(year, time.Month(month), day, hour, minute, second, r.fraction(s[19:len(s)-1]), time.UTC)
	// A day that the month doesn't have would be one of the next.
	if month < 1 || month > 12 || at.Day() != day || hour > 23 || minute > 59 || second > 59 {
		r.strange = true
	}
	return at
}

// digits reads a number in decimal.
func (r *reader) digits(s string) (n int) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			r.strange = true
		}
		n = 10*n + int(s[i]-'0')
	}
	return n
}

// fraction reads a point and what part of a second follows it, in nanoseconds.
func (r *reader) fraction(s string) int {
	if s == "" {
		return 0
	}
	if s[0] != '.' || len(s) == 1 {
		r.strange = true
		return 0
	}
	n := r.digits(s[1:])
	for range len(".999999999") - len(s) {
		n *= 10
	}
	return n
}

// numbers are the fields of a struct that is being read: those of which the number is
// known that are left, and which there were.
type numbers struct {
	left int
	seen [2]uint64
	// now is the number of the field whose value comes next.
	now uint64
}

// open begins a struct.
func (r *reader) open() numbers {
	n := r.head(cborMap)
	if n > manyElements {
		r.strange = true
		n = 0
	}
	return numbers{left: int(n)}
}

// next goes on to the next field, if there is one.
func (r *reader) next(f *numbers) bool {
	if f.left == 0 || r.strange {
		return false
	}
	f.left--
	f.now = r.uint()
	if f.now >= 64*uint64(len(f.seen)) {
		r.strange = true
		return false
	}
	word, bit := &f.seen[f.now/64], uint64(1)<<(f.now%64)
	if *word&bit != 0 {
		r.strange = true
	}
	*word |= bit
	return !r.strange
}
