package ledger

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

// KeyFormat is the first element of every mutation key's array.
const KeyFormat = "keep/v1"

// KeyParts is what makes two requests the same mutation.
type KeyParts struct {
	Workflow string
	Item     string
	Attempt  int
	// Connector and Operation are names, not versions.
	Connector string
	Operation string
	// Account is whose data is changed; never a secret.
	Account string
	// HostGroup is the connector's host_group, HostVars its host variables that are not identity.
	HostGroup string
	HostVars  map[string]string
	// Identity holds a JSON text by name.
	Identity map[string]string
	Subkey   string
}

// MutationKey is the SHA-256 of the canonical form (RFC 8785, but integers keep
// all their digits) of the array
//
//	["keep/v1", workflow, item, attempt, connector, operation, account,
//	 [host group, {host variable: value}], {identity name: value}, subkey]
//
// docs/mutation-key.md has test vectors. It fails only for an identity value
// that is no JSON or repeats a member name.
func MutationKey(p KeyParts) (Key, error) {
	array, err := p.canonical(make([]byte, 0, 512))
	if err != nil {
		return Key{}, fmt.Errorf("mutation key: %w", err)
	}
	return sha256.Sum256(array), nil
}

// canonical appends the array in its canonical form, part by part.
func (p *KeyParts) canonical(b []byte) ([]byte, error) {
	var err error
	text := func(s string) {
		if err == nil {
			b, err = jsontext.AppendQuote(b, s)
		}
	}
	list := func(texts ...string) {
		for _, s := range texts {
			text(s)
			b = append(b, ',')
		}
	}
	members := func(m map[string]string, value func(string)) {
		b = append(b, '{')
		var room [8]string // Few rules name more.
		names := slices.AppendSeq(room[:0], maps.Keys(m))
		slices.SortFunc(names, compareNames)
		for i, name := range names {
			if i > 0 {
				b = append(b, ',')
			}
			text(name)
			b = append(b, ':')
			value(m[name])
		}
		b = append(b, '}', ',')
	}
	b = append(b, '[')
	list(KeyFormat, p.Workflow, p.Item)
	b = append(strconv.AppendInt(b, int64(p.Attempt), 10), ',')
	list(p.Connector, p.Operation, p.Account)
	b = append(b, '[')
	list(p.HostGroup)
	members(p.HostVars, text)
	b[len(b)-1] = ']'
	b = append(b, ',')
	members(p.Identity, func(s string) {
		value := jsontext.Value(s)
		if err == nil {
			err = value.Canonicalize(jsontext.CanonicalizeRawInts(false))
		}
		b = append(b, value...)
	})
	text(p.Subkey)
	return append(b, ']'), err
}

// compareNames orders names by UTF-16 code units (RFC 8785 §3.2.3): bytes, but beyond the basic plane.
func compareNames(a, b string) int {
	if !beyondBasic(a) && !beyondBasic(b) {
		return strings.Compare(a, b)
	}
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

// beyondBasic reports whether s has a character beyond the basic plane.
func beyondBasic(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 0xffff }) >= 0
}

// Marker ties an object in the outside world to the mutation: 24 lower-case hex digits.
func Marker(k Key) string {
	var room [64]byte
	sum := sha256.Sum256(append(append(room[:0], "keep/v1 marker\x00"...), k[:]...))
	var digits [24]byte
	hex.Encode(digits[:], sum[:12])
	return string(digits[:])
}

// Formats of a vendor key.
const (
	// KeyUUID is a version 8 UUID (RFC 9562 §5.8).
	KeyUUID = "uuid"
	// KeyUUID4 has the layout of a version 4 UUID, for APIs that check it.
	KeyUUID4 = "uuid4"
	// KeyHex is 64 lower-case hex digits.
	KeyHex = "hex"
	// KeyToken is 52 characters of a–z and 2–7.
	KeyToken = "token"
)

// minVendorKey is the shortest vendor key that hardly collides, in characters (80 bits of hex).
const minVendorKey = 20

// VendorKey derives the API's own idempotency key from mutation and generation alone. A longer key is cut to
// maxLength, if that isn't 0. A limit below 20 is an error, and so is one that would cut a UUID.
func VendorKey(k Key, generation int, format string, maxLength int) (string, error) {
	var room [64]byte
	buf := append(append(room[:0], "keep/v1 vendor key\x00"...), k[:]...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(max(generation, 0)))
	sum := sha256.Sum256(buf)
	var key string
	switch format {
	case KeyUUID:
		key = uuid(sum, 8)
	case KeyUUID4:
		key = uuid(sum, 4)
	case KeyHex:
		key = hex.EncodeToString(sum[:])
	case KeyToken:
		key = strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
	default:
		return "", fmt.Errorf("vendor key: unknown format %q (want uuid, uuid4, hex or token)", format)
	}
	if maxLength == 0 || len(key) <= maxLength {
		return key, nil
	}
	if maxLength < minVendorKey || format == KeyUUID || format == KeyUUID4 {
		return "", fmt.Errorf("vendor key: %d characters are too few for format %q", maxLength, format)
	}
	return key[:maxLength], nil
}

// uuid lays 16 bytes of sum out as a UUID of the given version, variant 10.
func uuid(sum [sha256.Size]byte, version byte) string {
	b := sum[:16]
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
