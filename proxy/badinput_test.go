package proxy

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/internal/verdict"
)

// badInput is what a client sends, and what it must lead to besides one log line and the
// end of the connection.
type badInput struct {
	// tunnel is the target of a tunnel in which it is said; empty for none.
	tunnel string
	// secure says that TLS is spoken in the tunnel, below that it is said beside the TLS.
	secure, below bool
	// http2 says that HTTP/2 was agreed on.
	http2 bool
	said  string
	// fin ends the client's side.
	fin bool
	// answer begins what comes back, and line is in the log line.
	answer, line string
	// passing says that nothing was refused.
	passing bool
}

// endedConn notes the end of the connection below TLS, which comes to TLS only where no
// alert came before.
type endedConn struct {
	net.Conn
	eof atomic.Bool
}

func (c *endedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		c.eof.Store(true)
	}
	return n, err
}

// say sends it and reads until the proxy closes the connection.
func (b badInput) say(t *testing.T, r *run) string {
	t.Helper()
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(waitLimit))
	in := io.Reader(c)
	if b.tunnel != "" {
		_, _ = fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n%s\r\n", b.tunnel, r.basic(r.token))
		buffered := bufio.NewReader(c)
		resp, err := http.ReadResponse(buffered, &http.Request{Method: http.MethodConnect})
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("no tunnel: %v, %v", resp, err)
		}
		in = buffered
	}
	below := &endedConn{Conn: c}
	if b.secure {
		settings := &tls.Config{RootCAs: r.roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
		if b.http2 {
			settings.NextProtos = []string{"h2"}
		}
		session := tls.Client(below, settings)
		if err := session.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !b.below {
			c, in = session, session
		}
	}
	_, _ = io.WriteString(c, b.said)
	if b.fin {
		closeWrite(c)
	}
	answer, err := io.ReadAll(in)
	if err != nil {
		t.Errorf("not closed in order: %v", err)
	}
	// A server of HTTP/2 that ends while it writes a frame says nothing more.
	if below.eof.Load() && !b.below && !b.http2 {
		t.Error("closed without the alert (RFC 9112 §9.8)")
	}
	return string(answer)
}

// Whatever a client sends that is no request through a proxy is answered where its
// protocol lets one answer, leaves one line in the log, and reaches nobody.
func TestBadInput(t *testing.T) {
	t.Parallel()
	const bad, host = "HTTP/1.1 400 Bad Request\r\n", "127.0.0.1:1"
	const hello = "\x16\x03\x01\x02\x00\x01\x00"
	const alert, socks4, socks5 = "\x15\x03\x03\x00\x02\x02\x28", "\x00\x5b\x00\x00\x00\x00\x00\x00", "\x05\xff"
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	const pay = "POST http://AUTHORITY/pay HTTP/1.1\r\nHost: AUTHORITY\r\nContent-Type: application/json\r\nCREDENTIALS"
	token := "a-token-of-nobody"
	for name, b := range map[string]badInput{
		"a tunnel that is half open":        {tunnel: host, fin: true, line: "ended its tunnel before it asked for anything", passing: true},
		"a tunnel in which nothing is said": {tunnel: host, line: `"problem":"request-timeout"`},
		"half a CONNECT":                    {said: "CONNECT " + host + " HTTP/1.1\r\nHo", fin: true, answer: bad, line: "ended within the head"},
		"CONNECT to nowhere": {said: "CONNECT 0x7f000001:443 HTTP/1.1\r\nHost: 0x7f000001:443\r\nCREDENTIALSConnection: close\r\n\r\n",
			answer: "HTTP/1.1 422 ", line: `"problem":"ambiguous-request"`},

		"garbage":                                {said: "\x00\x01\x02\xff garbage\r\n\r\n", answer: bad, line: "This is not HTTP/1"},
		"garbage in a tunnel":                    {tunnel: host, said: "\x00\x01\x02\xff garbage\r\n\r\n", answer: bad, line: "This is not HTTP/1"},
		"garbage in a tunnel with TLS":           {tunnel: host, secure: true, said: "\x00\x01\x02\xff garbage\r\n\r\n", answer: bad, line: "This is not HTTP/1"},
		"a TLS record of garbage in a tunnel":    {tunnel: host, said: "\x16\x03\x01\x00\x05hello", answer: "\x15\x03\x01\x00\x02", line: `"problem":"tls"`},
		"the begin of a ClientHello in a tunnel": {tunnel: host, said: hello, fin: true, line: `"problem":"tls"`},

		"a tunnel with TLS and nothing in it": {tunnel: host, secure: true, fin: true, line: "ended its tunnel before it asked for anything", passing: true},
		"a tunnel with HTTP/2 and nothing in it": {tunnel: host, secure: true, http2: true, fin: true, said: preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
			line: "ended its tunnel before it asked for anything", passing: true},
		"garbage for HTTP/2":            {tunnel: host, secure: true, http2: true, said: "GET / HTTP/1.1\r\nHost: h\r\n\r\n", line: `"problem":"malformed-request"`},
		"garbage for a frame of HTTP/2": {tunnel: host, secure: true, http2: true, said: preface + "\xff\xff\xff\x04\x00garbage", line: `"problem":"malformed-request"`},
		"garbage for a TLS record":      {tunnel: host, secure: true, below: true, said: "GET / HTTP/1.1\r\n\r\n", answer: "\x17\x03\x03", line: `"problem":"tls"`},

		"no request line":                {said: "GET http://h/\r\nHost: h\r\n\r\n", answer: bad, line: "request line"},
		"no Host":                        {said: "GET http://h/ HTTP/1.1\r\n\r\n", answer: bad, line: "Host"},
		"lines that end in LF":           {tunnel: host, secure: true, said: "GET / HTTP/1.1\nHost: h\n\n", answer: bad, line: "LF without CR"},
		"a length that isn't one":        {tunnel: host, said: "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", answer: bad, line: "Content-Length"},
		"a head over the limit":          {tunnel: host, secure: true, said: "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", answer: "HTTP/1.1 431 ", line: "over the limit"},
		"a target over the limit":        {said: "GET http://h/" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\nHost: h\r\n\r\n", answer: "HTTP/1.1 414 ", line: "over the limit"},
		"an expectation":                 {said: "POST http://h/ HTTP/1.1\r\nHost: h\r\nExpect: the-best\r\nContent-Length: 1\r\n\r\n", answer: "HTTP/1.1 417 ", line: "100-continue"},
		"a coding":                       {said: "POST http://h/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", answer: "HTTP/1.1 501 ", line: "transfer coding"},
		"another host than the tunnel's": {tunnel: host, said: "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", answer: "HTTP/1.1 421 ", line: `"problem":"misdirected"`},
		"a chunk of no size":             {said: pay + "Transfer-Encoding: chunked\r\n\r\nx\r\nabc\r\n0\r\n\r\n", answer: bad, line: `"problem":"malformed-request"`},
		"a chunk that is too long":       {said: pay + "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n", answer: bad, line: `"problem":"malformed-request"`},
		"a trailer that frames":          {said: pay + "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 1\r\n\r\n", answer: bad, line: `"problem":"malformed-request"`},
		"chunks that break off":          {said: pay + "Transfer-Encoding: chunked\r\n\r\n3\r\na", fin: true, answer: bad, line: `"problem":"incomplete-request"`},
		"content that breaks off":        {said: pay + "Content-Length: 9\r\n\r\n{", fin: true, answer: bad, line: `"problem":"incomplete-request"`},
		"bad chunks behind a refusal":    {said: "POST http://h/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", answer: "HTTP/1.1 407 ", line: `"problem":"credentials"`},

		"SOCKS 4":             {said: "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", answer: socks4, line: "speaks SOCKS"},
		"SOCKS 5":             {said: "\x05\x01\x00", answer: socks5, line: "speaks SOCKS"},
		"SOCKS 4 in a tunnel": {tunnel: host, said: "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", answer: socks4, line: "speaks SOCKS"},
		"SOCKS 5 in a tunnel": {tunnel: host, said: "\x05\x01\x00", answer: socks5, line: "speaks SOCKS"},

		"TLS to the listener": {said: hello, answer: alert, line: "speaks TLS to a listener"},
		"TLS in TLS":          {tunnel: host, secure: true, said: hello, answer: alert, line: "speaks TLS to a listener"},
		"plain HTTP where TLS is spoken": {tunnel: "127.0.0.1:443", said: "GET / HTTP/1.1\r\nHost: 127.0.0.1:443\r\nConnection: close\r\n\r\n",
			answer: bad, line: `"problem":"malformed-request"`},
		"HTTP/2 without TLS":   {said: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", answer: "HTTP/1.1 505 ", line: "HTTP/2 is spoken over TLS only"},
		"what is for a server": {said: "GET /secret-path HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", answer: bad, line: `"problem":"not-a-proxy-request"`},
		"a token in the URL":   {said: "GET http://run:" + token + "@" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n", answer: bad, line: "user information"},
		"a token in CONNECT":   {said: "CONNECT run:" + token + "@" + host + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n", answer: bad, line: "user information"},
		// More than a head may hold, and less.
		"a user name of 64 KiB": {said: "GET http://h/ HTTP/1.1\r\nHost: h\r\n" + proxyAuthorization("Basic", strings.Repeat("u", 64<<10)+":x") + "\r\n",
			answer: "HTTP/1.1 431 ", line: "over the limit"},
		"a user name of 40 KiB": {said: "GET http://h/ HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + proxyAuthorization("Basic", strings.Repeat("u", 40<<10)+":"+token) + "\r\n",
			answer: "HTTP/1.1 407 ", line: `"problem":"credentials"`},
		"the token of nobody": {said: "GET http://h/ HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + proxyAuthorization("Basic", "run:"+token) + "\r\n",
			answer: "HTTP/1.1 407 ", line: `"problem":"credentials"`},
		"CONNECT of nobody":    {said: "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\nConnection: close\r\n\r\n", answer: "HTTP/1.1 407 ", line: `"problem":"credentials"`},
		"a client of HTTP/1.0": {said: "GET http://h/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", answer: "HTTP/1.1 407 ", line: `"problem":"credentials"`},
		"a request in a request": {tunnel: host, said: "CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n",
			answer: "HTTP/1.1 403 ", line: `"problem":"denied"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, counts := &lines{}, &refusalCounts{}
			w := newWorld(t, created, func(c *Config) {
				c.Log, c.Metrics = zerolog.New(log), counts
				if b.http2 {
					c.Log = c.Log.Level(zerolog.InfoLevel) // Its server tells of them, too.
				}
				if name == "a tunnel in which nothing is said" {
					c.RequestTimeout = 50 * time.Millisecond
				}
			})
			r := w.open("a")
			b.said = strings.NewReplacer("CREDENTIALS", w.basic(r.token), "AUTHORITY", w.authority).Replace(b.said)
			got := b.say(t, r)
			// A server of HTTP/2 may have said something of its own, and may not.
			if !b.http2 && (!strings.HasPrefix(got, b.answer) || b.answer == "" && got != "") {
				t.Errorf("answered with %.200q, want %q", got, b.answer)
			}
			log.await(t, 1)
			wantToldOnce(t, got, log, counts, b.passing)
			if all, right := log.with("{"), log.with(b.line); all != 1 || right != 1 {
				t.Errorf("%d log lines, %d with %s: %s", all, right, b.line, log.all())
			}
			if log.with(token)+log.with("secret-path") > 0 {
				t.Errorf("the log holds what a client sent in a wrong place: %s", log.all())
			}
			w.sends.mu.Lock()
			defer w.sends.mu.Unlock()
			if len(w.sends.n) > 0 {
				t.Errorf("the upstream saw %v", w.sends.n)
			}
		})
	}
}

// refusalCounts counts what was refused, by its name.
type refusalCounts struct {
	noMetrics
	counter
}

func (c *refusalCounts) Request(_, problem string, _ int, _ time.Duration) {
	if problem != "" {
		c.add(problem)
	}
}

// wantToldOnce asserts that what was refused is told by the same name in the answer, where it has
// one, in the log's line, and in the metrics.
func wantToldOnce(t *testing.T, answer string, log *lines, counts *refusalCounts, passing bool) {
	t.Helper()
	var line struct {
		Level   string `json:"level"`
		Message string `json:"message"`
		Problem string `json:"problem"`
	}
	if err := json.Unmarshal([]byte(log.all()), &line); err != nil {
		t.Fatalf("not one line: %v: %s", err, log.all())
	}
	level, n := "warn", 1
	if passing {
		level, n = "info", 0
	}
	if line.Message != "request" || line.Level != level || (line.Problem == "") != passing {
		t.Errorf("the line is %+v", line)
	}
	if got := counts.of(line.Problem); got != n || len(counts.n) != n {
		t.Errorf("counted are %v, for the line of %s", counts.n, line.Problem)
	}
	if !strings.HasPrefix(answer, "HTTP/") {
		return
	}
	all := answers(t, []byte(answer))
	switch {
	case len(all) != 1:
		t.Errorf("%d answers", len(all))
	case all[0].status != http.StatusProxyAuthRequired:
		wantProblem(t, all[0], line.Problem, all[0].status, "")
	}
}

// A connection that is reset within a head can't be answered, but is told of.
func TestAResetWithinAHeadIsToldOf(t *testing.T) {
	t.Parallel()
	log, counts := &lines{}, &refusalCounts{}
	w := newWorld(t, created, func(c *Config) { c.Log, c.Metrics = zerolog.New(log), counts })
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	// Both are read at once: the first one's answer says that the second one was, too.
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\nGET http://h/ HTTP/1.1\r\nHo")
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Fatalf("%+v, %v", resp, err)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
	log.await(t, 2)
	if n := log.with("ended within the head"); n != 1 || log.with(`"delivered":false`) != 1 || log.with("{") != 2 || counts.of("malformed-request") != 1 {
		t.Errorf("%d lines of it: %s", n, log.all())
	}
}

// What the scanner lets through and the server can't read is refused like any other.
func TestAHeadThatTheServerCannotReadIsToldOf(t *testing.T) {
	t.Parallel()
	for said, status := range map[string]int{
		"GET http://[h/ HTTP/1.1\r\nHost: h\r\n\r\n":                               400,
		"GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n": 431,
	} {
		log, counts := &lines{}, &refusalCounts{}
		w := newWorld(t, created, func(c *Config) { c.Log, c.Metrics = zerolog.New(log), counts })
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		w.address = l.Addr().String()
		go func() {
			defer func() { _ = l.Close() }()
			c, err := l.Accept()
			if err != nil {
				return
			}
			g := w.proxy.guard(c, nil)
			g.raw.Store(true) // No scanner looks.
			w.proxy.outer.Serve(g)
		}()
		answer := string(w.talk(said))
		log.await(t, 1)
		wantToldOnce(t, answer, log, counts, false)
		if all := answers(t, []byte(answer)); all[0].status != status {
			t.Errorf("answered with %d, want %d", all[0].status, status)
		}
	}
}

func proxyAuthorization(scheme, credentials string) string {
	return "Proxy-Authorization: " + scheme + " " + base64.StdEncoding.EncodeToString([]byte(credentials)) + "\r\n"
}

// Credentials count in one spelling: one field, one scheme, one pair in base64.
func TestOddSpellingsOfCredentials(t *testing.T) {
	t.Parallel()
	log := &lines{}
	w := newWorld(t, created, func(c *Config) { c.Log = zerolog.New(log) })
	r := w.open("a")
	pair := "run:" + r.token
	encoded := base64.StdEncoding.EncodeToString([]byte(pair))
	field := func(value string) string { return "Proxy-Authorization: " + value + "\r\n" }
	for name, c := range map[string]struct {
		fields string
		good   bool
	}{
		"as they should be":               {field("Basic " + encoded), true},
		"the scheme in lower case":        {field("basic " + encoded), true},
		"the scheme in upper case":        {field("BASIC " + encoded), true},
		"the field in lower case":         {"proxy-authorization: Basic " + encoded + "\r\n", true},
		"two spaces behind the scheme":    {field("Basic  " + encoded), true},
		"twice the same":                  {field("Basic "+encoded) + field("Basic "+encoded), false},
		"a list":                          {field("Basic " + encoded + ", Basic " + encoded), false},
		"another scheme before it":        {field("Negotiate x, Basic " + encoded), false},
		"another field before it":         {field("Bearer x") + field("Basic "+encoded), false},
		"a tab behind the scheme":         {field("Basic\t" + encoded), false},
		"no space behind the scheme":      {field("Basic" + encoded), false},
		"no scheme":                       {field(encoded), false},
		"a scheme alone":                  {field("Basic"), false},
		"nothing":                         {field(""), false},
		"in quotes":                       {field(`Basic "` + encoded + `"`), false},
		"as a parameter":                  {field("Basic token=" + encoded), false},
		"not in base64":                   {field("Basic " + pair), false},
		"a space within":                  {field("Basic " + encoded[:4] + " " + encoded[4:]), false},
		"twice in base64":                 {field("Basic " + base64.StdEncoding.EncodeToString([]byte(encoded))), false},
		"more behind the padding":         {field("Basic " + encoded + "="), false},
		"a line end in the password":      {proxyAuthorization("Basic", pair+"\n"), false},
		"a NUL in the password":           {proxyAuthorization("Basic", pair+"\x00"), false},
		"a colon more":                    {proxyAuthorization("Basic", pair+":"), false},
		"no colon":                        {proxyAuthorization("Basic", r.token), false},
		"no user name":                    {proxyAuthorization("Basic", ":"+r.token), false},
		"no password":                     {proxyAuthorization("Basic", "run:"), false},
		"the token as the user name":      {proxyAuthorization("Basic", r.token+":run"), false},
		"the user name in capitals":       {proxyAuthorization("Basic", "RUN:"+r.token), false},
		"the token in capitals":           {proxyAuthorization("Basic", "run:"+strings.ToUpper(r.token)), false},
		"the user name in full width":     {proxyAuthorization("Basic", "ｒｕｎ:"+r.token), false},
		"a user name that is no UTF-8":    {proxyAuthorization("Basic", "\xff:"+r.token), false},
		"in UTF-16":                       {proxyAuthorization("Basic", strings.Join(strings.Split(pair, ""), "\x00")), false},
		"the digest for the token":        {proxyAuthorization("Basic", "run:"+TokenDigest(r.token)), false},
		"in Authorization":                {"Authorization: Basic " + encoded + "\r\n", false},
		"with an underscore in the field": {"Proxy_Authorization: Basic " + encoded + "\r\n", false},
		"as a bearer token":               {field("Bearer " + r.token), false},
		"another scheme for the same":     {field("Bearer " + encoded), false},
		"as a digest":                     {field(`Digest username="run", response="` + r.token + `"`), false},
	} {
		before, sent := log.with(`"message":"request"`), w.sends.of("/read")
		all := answers(t, w.talk("GET "+w.upstream.URL+"/read HTTP/1.1\r\nHost: "+w.authority+"\r\nConnection: close\r\n"+c.fields+"\r\n"))
		want := map[bool]int{true: http.StatusCreated, false: http.StatusProxyAuthRequired}[c.good]
		if len(all) != 1 || all[0].status != want {
			t.Errorf("%s: %+v, want %d", name, all, want)
		}
		if n := log.with(`"message":"request"`) - before; n != 1 {
			t.Errorf("%s: %d log lines", name, n)
		}
		if got := w.sends.of("/read") > sent; got != c.good {
			t.Errorf("%s: sent on: %t", name, got)
		}
	}
	if log.with(r.token)+log.with(encoded) > 0 {
		t.Error("the log holds a token")
	}
}

// The token of a run that has ended is known, and says so, in a tunnel and outside.
func TestTheTokenOfARunThatEnded(t *testing.T) {
	t.Parallel()
	log := &lines{}
	w := newWorld(t, created, func(c *Config) { c.Log = zerolog.New(log) })
	r := w.open("a")
	if _, err := w.ledger.EndRun(t.Context(), r.id, verdict.Transient, "test", "test"); err != nil {
		t.Fatal(err)
	}
	request := "GET " + w.upstream.URL + "/read HTTP/1.1\r\nHost: " + w.authority + "\r\nConnection: close\r\n"
	for name, b := range map[string]badInput{
		"outside": {said: request + w.basic(r.token) + "\r\n"},
		"inside":  {tunnel: w.authority, secure: true, said: strings.Replace(request, w.upstream.URL, "", 1) + "\r\n"},
	} {
		before := log.with(`"problem":"run-aborted"`)
		all := answers(t, []byte(b.say(t, r)))
		if len(all) != 1 {
			t.Fatalf("%s: %d answers", name, len(all))
		}
		wantProblem(t, all[0], "run-aborted", http.StatusFailedDependency, "over")
		if n := log.with(`"problem":"run-aborted"`) - before; n != 1 {
			t.Errorf("%s: %d log lines", name, n)
		}
	}
	w.wantSends("/read", 0)
}
