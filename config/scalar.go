package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/textproto"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"keep-proxy/internal/names"
)

// reader reads one value from its text, whichever source it came from. Relative paths are taken from the folder base.
type reader func(base, s string) (any, *fault)

// typed is a reader of one type.
func typed[T any](read func(base, s string) (T, *fault)) reader {
	return func(base, s string) (any, *fault) { return read(base, s) }
}

// orNone also takes an empty text, for none.
func orNone[T any](read func(base, s string) (T, *fault)) reader {
	return func(base, s string) (any, *fault) {
		if s == "" {
			var none T
			return none, nil
		}
		return read(base, s)
	}
}

// readers read values by their type.
var readers = map[reflect.Type]reader{
	reflect.TypeFor[string]():        typed(readText),
	reflect.TypeFor[bool]():          typed(readBool),
	reflect.TypeFor[int]():           typed(readInt),
	reflect.TypeFor[float64]():       typed(readNumber),
	reflect.TypeFor[time.Duration](): typed(readDuration),
	reflect.TypeFor[Size]():          typed(readSize),
	reflect.TypeFor[Secret]():        typed(readSecret),
	reflect.TypeFor[Bundled]():       typed(readBundled),
	reflect.TypeFor[Unmatched]():     oneOf(UnmatchedDeny, UnmatchedObserve, UnmatchedAllow),
	reflect.TypeFor[BlockScope]():    oneOf(BlockWorkflow, BlockItem, BlockMutation),
	reflect.TypeFor[CredentialUse](): oneOf(UseAlways, UseReconcile),
	reflect.TypeFor[OnAbsent]():      oneOf(OnAbsentFail, OnAbsentRedispatch, OnAbsentEscalate),
	reflect.TypeFor[Verify]():        oneOf(VerifyOff, VerifyWarn, VerifyStrict, VerifyHuman),
	reflect.TypeFor[TokenRole]():     oneOf(TokenViewer, TokenOperator, TokenHost),
	reflect.TypeFor[After]():         oneOf(AfterRefuse, AfterForget),
	reflect.TypeFor[LogLevel]():      oneOf(LevelTrace, LevelDebug, LevelInfo, LevelWarn, LevelError),
	reflect.TypeFor[LogFormat]():     oneOf(FormatAuto, FormatConsole, FormatJSON),
	reflect.TypeFor[Engine](): func(base, s string) (any, *fault) {
		if s == "postgres" {
			return nil, &fault{"not yet built: this version does not know what to do with postgres", "use badger"}
		}
		return oneOf(EngineBadger)(base, s)
	},
}

// textReaders read texts that mean more than their type says, by the tag read.
var textReaders = map[string]reader{
	"path":           typed(readPath),
	"listen":         typed(readListen),
	"listen_or_none": orNone(readListen),
	"run_listen":     typed(readRunListen),
	"advertise":      orNone(readAdvertise),
	"host":           typed(readHostPattern),
	"target":         typed(readTarget),
	"egress":         typed(readEgress),
	"connector_host": typed(readConnectorHost),
	"proxy_url":      orNone(readProxyURL),
	"public_url":     orNone(readPublicURL),
	"secret_or_none": orNone(readSecret),
	"header":         typed(readHeaderName),
	"scheme":         typed(readScheme),
	"digest":         typed(readDigest),
}

func readText(_, s string) (string, *fault) {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", &fault{"control characters are not allowed", "remove them"}
	}
	return s, nil
}

func readPath(base, s string) (string, *fault) {
	switch {
	case s == "":
		return "", nil
	case strings.ContainsRune(s, 0):
		return "", &fault{"a path can't hold NUL", "remove it"}
	case s == "~" || strings.HasPrefix(s, "~/"):
		return "", &fault{"~ is a shell's abbreviation and is not expanded here", "write the home folder in full"}
	case filepath.IsAbs(s):
		return filepath.Clean(s), nil
	default:
		return filepath.Join(base, s), nil
	}
}

func readBool(_, s string) (bool, *fault) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, &fault{"not a boolean", "write true or false"}
	}
}

func readInt(_, s string) (int, *fault) {
	n, err := strconv.Atoi(s)
	if err != nil || s[0] == '+' || leadingZero(s) {
		return 0, &fault{"not a whole number", "write decimal digits without a leading zero, such as 5"}
	}
	return n, nil
}

// leadingZero finds what YAML 1.1 would read as octal and YAML 1.2 as decimal.
func leadingZero(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return len(s) > 1 && s[0] == '0' && '0' <= s[1] && s[1] <= '9'
}

func readNumber(_, s string) (float64, *fault) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "-0123456789.") != "" || leadingZero(s) {
		return 0, &fault{"not a number", "write a decimal number such as 0.2"}
	}
	return n, nil
}

func readDuration(_, s string) (time.Duration, *fault) {
	d, err := time.ParseDuration(s)
	if err == nil {
		return d, nil
	}
	if _, numeric := strconv.ParseFloat(s, 64); numeric == nil {
		return 0, &fault{"a duration needs a unit", fmt.Sprintf("write %ss for seconds, or use ms, m or h", s)}
	}
	return 0, &fault{"not a duration", "write a number and a unit (ms, s, m, h), such as 10s or 1h30m"}
}

func readSize(_, s string) (Size, *fault) {
	n, err := ParseSize(s)
	switch {
	case errors.Is(err, errSize):
		return 0, &fault{"not a size", "write a whole number and a unit, such as 64KiB or 10MiB"}
	case err != nil:
		return 0, &fault{"not a size: " + err.Error(), "use B, KiB, MiB, GiB or TiB (kB, MB, GB and TB are powers of 1000)"}
	case leadingZero(s):
		return 0, &fault{"not a size: a leading zero", "write the number without it"}
	default:
		return n, nil
	}
}

// oneOf reads one of some words.
func oneOf[T ~string](values ...T) reader {
	return func(_, s string) (any, *fault) {
		if slices.Contains(values, T(s)) {
			return T(s), nil
		}
		names := make([]string, len(values))
		for i, v := range values {
			names[i] = string(v)
		}
		return nil, &fault{"not a known value", "use " + orList(names)}
	}
}

// orList writes a, b or c.
func orList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func readSecret(_, s string) (Secret, *fault) {
	secret, err := ParseSecret(s)
	if err != nil {
		return Secret{}, &fault{err.Error(), "write text with ${env:NAME} or ${file:/absolute/path} in it"}
	}
	return secret, nil
}

// readBundled reads all or none; names come as a list.
func readBundled(base, s string) (Bundled, *fault) {
	all, f := readBool(base, s)
	if f != nil {
		return Bundled{}, &fault{"neither a boolean nor a list", "write true for all, false for none, or a list of names"}
	}
	return Bundled{All: all}, nil
}

// readHeaderName reads the name of a field that a credential may set, and gives
// it back in canonical form.
func readHeaderName(_, s string) (string, *fault) {
	if !httpguts.ValidHeaderFieldName(s) {
		return "", &fault{"not a header's name", "write the name alone, such as Authorization, without a colon"}
	}
	name := textproto.CanonicalMIMEHeaderKey(s)
	if isProxysOwn(name) {
		return "", &fault{"the proxy sets or removes this header itself", "use the header in which the API expects its credential"}
	}
	return name, nil
}

// isProxysOwn reports whether a canonical name belongs to message framing,
// routing, a single connection (RFC 9110 §7.6.1), or to keep-proxy.
func isProxysOwn(name string) bool {
	switch name {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Te", "Trailer", "Upgrade", "Expect":
		return true
	default:
		return strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "Keep-")
	}
}

// readScheme reads an authentication scheme, a token (RFC 9110 §11.1), or nothing.
func readScheme(_, s string) (string, *fault) {
	if s != "" && !httpguts.ValidHeaderFieldName(s) {
		return "", &fault{"not an authentication scheme", "write one word such as Bearer, or \"\" for none"}
	}
	return s, nil
}

// readProxyURL reads http://host:port or https://host:port, or nothing. The text of a
// URL with credentials in it is not quoted.
func readProxyURL(_, s string) (string, *fault) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !names.IsHost(u.Hostname()):
		return "", &fault{"not the address of an HTTP proxy", "write http://host:port, or https://host:port"}
	case u.User != nil:
		return "", &fault{"credentials don't belong into the URL", "give them as user and password"}
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return "", &fault{"a proxy has no path", "write http://host:port, or https://host:port"}
	}
	return u.Scheme + "://" + u.Host, nil
}

// readPublicURL reads http or https with a host and perhaps a path, or nothing. It returns that without a slash at its
// end.
func readPublicURL(_, s string) (string, *fault) {
	const form = "write https://HOST or https://HOST/PATH"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || !names.IsHost(u.Hostname()) || u.Port() != "" && !isPort(u.Port(), 1):
		return "", &fault{"not an address that a browser opens", form}
	case u.User != nil:
		return "", &fault{"credentials would stand in every alert", form}
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", &fault{"paths are added to it, so it has neither query nor fragment", form}
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// readDigest reads a token's digest. What is no digest may be the token itself, so that
// no problem quotes it.
func readDigest(_, s string) (string, *fault) {
	sum, err := hex.DecodeString(s)
	if err != nil || len(sum) != sha256.Size {
		return "", &fault{"not the SHA-256 of a token, in 64 hex digits", "make it by: printf %s \"$TOKEN\" | sha256sum"}
	}
	if empty := sha256.Sum256(nil); slices.Equal(sum, empty[:]) {
		return "", &fault{"the SHA-256 of nothing", "make a token, by openssl rand -hex 32, and its digest by: printf %s \"$TOKEN\" | sha256sum"}
	}
	return hex.EncodeToString(sum), nil
}

// Size is a number of bytes. It is never negative in a loaded [Config].
type Size int64

// Units of [Size], as IEC 80000-13 names them.
const (
	Byte Size = 1
	KiB       = 1024 * Byte
	MiB       = 1024 * KiB
	GiB       = 1024 * MiB
	TiB       = 1024 * GiB
)

// sizeUnits holds every accepted unit, binary ones from the largest first, since
// String uses the first that divides evenly.
var sizeUnits = []struct {
	name   string
	bytes  Size
	binary bool
}{
	{"TiB", TiB, true},
	{"GiB", GiB, true},
	{"MiB", MiB, true},
	{"KiB", KiB, true},
	{"TB", 1e12, false},
	{"GB", 1e9, false},
	{"MB", 1e6, false},
	{"kB", 1e3, false},
	{"KB", 1e3, false},
	{"B", Byte, false},
}

var errSize = errors.New("a size is a whole number and a unit")

// ParseSize reads a size such as 10MiB, 64KiB, 1GB, 512B or a bare number of
// bytes. Units are case-sensitive: k is 1000 in kB and KB, 1024 in KiB. A
// fraction, a sign, an unknown unit and a size of 8 EiB or more are errors.
func ParseSize(s string) (Size, error) {
	digits := strings.TrimRight(s, "TGMKkiB ")
	unit := strings.TrimSpace(s[len(digits):])
	if digits == "" || strings.TrimLeft(digits, "0123456789") != "" {
		return 0, errSize
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s does not fit 63 bits", digits)
	}
	per, ok := unitBytes(unit)
	if !ok {
		return 0, fmt.Errorf("unknown unit %q", unit)
	}
	if n > math.MaxInt64/int64(per) {
		return 0, fmt.Errorf("%s does not fit 63 bits", s)
	}
	return Size(n) * per, nil
}

func unitBytes(name string) (Size, bool) {
	if name == "" {
		return Byte, true
	}
	for _, u := range sizeUnits {
		if u.name == name {
			return u.bytes, true
		}
	}
	return 0, false
}

// String writes the size with the largest binary unit that divides it, so that
// [ParseSize] gives it back exactly.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if u.binary && s != 0 && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}
