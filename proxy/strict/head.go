package strict

import "bytes"

// head is what is known of a request's head so far. Its slices are kept from one
// request to the next.
type head struct {
	connect bool
	minor   byte
	// absolute says that the target was in absolute-form.
	absolute  bool
	scheme    string
	authority []byte
	host      []byte

	hosts, lengths, codings int
	length                  int64
	chunked                 bool
	// upgrade says that there is an Upgrade field.
	upgrade bool
	fault   *Fault
}

func (h *head) reset() {
	*h = head{authority: h.authority[:0], host: h.host[:0]}
}

// requestLine reads method, target and version (RFC 9112 §3).
func (h *head) requestLine(line []byte) *Fault {
	first := bytes.IndexByte(line, ' ')
	last := bytes.LastIndexByte(line, ' ')
	if first < 0 || first == last {
		return FaultRequestLine
	}
	method, target, version := line[:first], line[first+1:last], line[last+1:]
	if !isToken(method) {
		return FaultMethod
	}
	if f := h.version(version); f != nil {
		return f
	}
	if len(target) == 0 {
		return FaultRequestLine
	}
	if f := checkTarget(target); f != nil {
		return f
	}
	return h.form(method, target)
}

// version reads HTTP-version (RFC 9112 §2.3).
func (h *head) version(v []byte) *Fault {
	if len(v) != len("HTTP/1.1") || string(v[:5]) != "HTTP/" || v[6] != '.' ||
		classes[v[5]]&digitChar == 0 || classes[v[7]]&digitChar == 0 {
		return FaultRequestLine
	}
	if v[5] != '1' {
		return FaultVersion
	}
	h.minor = v[7] - '0'
	return nil
}

// checkTarget looks at the characters of a request target. Escapes are left to the rules, which judge them where a
// connector has the host. Many clients send a bare "%".
func checkTarget(target []byte) *Fault {
	for _, c := range target {
		switch {
		case c == ' ' || c == '\t':
			return FaultRequestLine
		case classes[c]&valueChar == 0:
			return FaultControl
		case c == '#':
			return FaultFragment
		}
	}
	return nil
}

// form tells the four forms of a target apart (RFC 9112 §3.2).
func (h *head) form(method, target []byte) *Fault {
	switch {
	case string(method) == "CONNECT":
		h.connect = true
		host, port, f := splitAuthority(target)
		if f != nil {
			return f
		}
		if host == nil || port == nil {
			return FaultPort
		}
		h.authority = append(h.authority, target...)
		return nil
	case len(target) == 1 && target[0] == '*':
		if string(method) != "OPTIONS" {
			return FaultAsterisk
		}
		return nil
	case target[0] == '/':
		return nil
	}
	return h.absoluteForm(target)
}

// absoluteForm reads scheme and authority (RFC 9112 §3.2.2).
func (h *head) absoluteForm(target []byte) *Fault {
	colon := bytes.Index(target, []byte("://"))
	if colon <= 0 || !isScheme(target[:colon]) {
		return FaultTarget
	}
	switch {
	case is(target[:colon], "http"):
		h.scheme = "http"
	case is(target[:colon], "https"):
		h.scheme = "https"
	}
	rest := target[colon+len("://"):]
	authority := rest
	if end := bytes.IndexAny(rest, "/?"); end >= 0 {
		authority = rest[:end]
	}
	if _, _, f := splitAuthority(authority); f != nil {
		return f
	}
	h.absolute = true
	h.authority = append(h.authority, authority...)
	return nil
}

func isScheme(b []byte) bool {
	for i, c := range b {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || classes[c]&digitChar == 0 && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return len(b) > 0
}

// parseField parts a field line (RFC 9112 §5.1) and checks both sides.
func parseField(line []byte) (name, value []byte, f *Fault) {
	if line[0] == ' ' || line[0] == '\t' {
		return nil, nil, FaultFold
	}
	n := tokenLen(line)
	if n == 0 || n == len(line) || line[n] != ':' {
		if !all(line, valueChar) {
			return nil, nil, FaultControl
		}
		return nil, nil, FaultName
	}
	if value = line[n+1:]; !all(value, valueChar) {
		return nil, nil, FaultControl
	}
	return line[:n], trim(value), nil
}

// field reads one field line.
func (h *head) field(line []byte) *Fault {
	name, value, f := parseField(line)
	if f != nil {
		return f
	}
	switch len(name) {
	case len("host"):
		if is(name, "host") {
			return h.hostField(value)
		}
	case len("expect"):
		if is(name, "expect") && !is(value, "100-continue") && h.fault == nil {
			h.fault = FaultExpectation
		}
	case len("trailer"):
		if is(name, "trailer") {
			return announced(value)
		}
		h.upgrade = h.upgrade || is(name, "upgrade")
	case len("content-length"):
		if is(name, "content-length") {
			return h.lengthField(value)
		}
		if spelt(name, "content-length") {
			return FaultUnderscore
		}
	case len("transfer-encoding"):
		if is(name, "transfer-encoding") {
			return h.codingField(value)
		}
		if spelt(name, "transfer-encoding") {
			return FaultUnderscore
		}
	}
	return nil
}

// spelt reports whether a name is word with underscores for its hyphens.
func spelt(name []byte, word string) bool {
	if len(name) != len(word) || bytes.IndexByte(name, '_') < 0 {
		return false
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] && (c != '_' || word[i] != '-') {
			return false
		}
	}
	return true
}

// announced looks at the names in a Trailer field.
func announced(value []byte) *Fault {
	for name := range bytes.SplitSeq(value, []byte(",")) {
		if notInTrailer(trim(name)) {
			return FaultTrailer
		}
	}
	return nil
}

func (h *head) hostField(value []byte) *Fault {
	if h.hosts++; h.hosts > 1 {
		return FaultHosts
	}
	switch _, _, f := splitAuthority(value); f {
	case nil:
	case FaultAuthority:
		return FaultHost
	default:
		return f
	}
	h.host = append(h.host, value...)
	return nil
}

func (h *head) lengthField(value []byte) *Fault {
	if h.lengths++; h.lengths > 1 {
		return FaultLengths
	}
	n, ok := number(value)
	if !ok {
		return FaultLength
	}
	h.length = n
	return nil
}

// codingField reads Transfer-Encoding. A list is refused even where RFC 9112 §6.1 has a meaning for
// it, as only chunked is known. Where chunked isn't the last one, nobody knows where the content
// ends (§6.3), whatever the others are.
func (h *head) codingField(value []byte) *Fault {
	h.codings++
	switch {
	case h.codings > 1:
		return FaultCoding
	case is(value, "chunked"):
		h.chunked = true
		return nil
	}
	known, last := true, []byte(nil)
	for part := range bytes.SplitSeq(value, []byte(",")) {
		last = trim(part)
		known = known && (len(last) == 0 || is(last, "chunked") || is(last, "identity") || !isToken(last))
	}
	if known || !is(last, "chunked") {
		return FaultCoding
	}
	return FaultUnknown
}

// judge looks at the whole head.
func (h *head) judge() *Fault {
	switch {
	case h.hosts == 0 && h.minor > 0:
		return FaultNoHost
	case h.codings > 0 && h.minor == 0:
		return FaultOldCoding
	case h.codings > 0 && h.lengths > 0:
		return FaultFraming
	case h.connect && (h.codings > 0 || h.length > 0):
		return FaultConnectBody
	case h.fault != nil:
		return h.fault
	case h.hosts == 0:
	case h.connect && !h.sameTarget():
		return FaultMisdirected
	}
	return nil
}

// sameTarget compares the Host of a CONNECT request with its target. Some clients
// leave the port out of it.
func (h *head) sameTarget() bool {
	target, port, _ := splitAuthority(h.authority)
	host, given, _ := splitAuthority(h.host)
	return bytes.EqualFold(undotted(target), undotted(host)) && (given == nil || samePort(port, given, ""))
}
