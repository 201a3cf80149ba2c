package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// refusing makes the answer of a refusal, which is noted before. Every refusal comes by here.
func (p *Proxy) refusing(x *exchange, r *http.Request, f *refusal) *http.Response {
	content := x.said()
	meant := x.rule != nil && x.rule.Effect == rules.EffectDeny || f.problem == problemUnmatched && p.expected(r)
	if !meant {
		p.missing(x, r, ledger.Refused{Code: string(f.problem), Class: f.kind().class, Detail: f.detail})
	}
	return f.response(r, content, p.config.Help)
}

// missing has the caller's run note that work is missing, unless the request changes nothing. Where the ledger can't
// be told, the run is over.
func (p *Proxy) missing(x *exchange, r *http.Request, f ledger.Refused) {
	if _, over := p.unrecorded.Over(x.caller.run); over || !x.works(r) {
		return
	}
	f.Method, f.Host = r.Method, r.Host
	if x.matched {
		f.Path = x.path(r.URL.Path)
	}
	if x.caller.many {
		f.Item = x.caller.item
	}
	if f.Digest == "" {
		f.Exchange = x.identify(r)
	}
	if err := p.ledger.Refuses(context.WithoutCancel(r.Context()), x.caller.run, f); err != nil {
		p.endLater(x.caller.run, ledger.Over{Why: "the ledger couldn't note that a request was refused"})
	}
}

// works reports whether the request is a run's, and may change something.
func (x *exchange) works(r *http.Request) bool {
	return x.caller.managed() && !x.reads && (!safe(r.Method) || x.rule != nil && x.rule.Effect == rules.EffectMutation)
}

// expected reports whether the operator expects undeclared requests to the host.
func (p *Proxy) expected(r *http.Request) bool { return amongHosts(p.config.Expected, r) }

// amongHosts reports whether a request is to one of the hosts.
func amongHosts(hosts []string, r *http.Request) bool {
	target := withPort(r.URL.Scheme, r.URL.Host)
	host, _, err := net.SplitHostPort(target)
	return err == nil && covered(hosts, host, target)
}

// through notes that a request got an answer which isn't the proxy's own. A redirect leaves the work to its Location.
func (p *Proxy) through(x *exchange, r *http.Request, resp *http.Response) {
	if !x.works(r) || x.problem != "" {
		return
	}
	p.ledger.Through(x.caller.run, x.identify(r))
	if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
		return
	}
	f := ledger.Refused{Code: ledger.CodeRedirected, Class: verdict.Logic}
	f.Detail = fmt.Sprintf("The API answered with status %d, and its Location gave no answer.", resp.StatusCode)
	if to, err := r.URL.Parse(resp.Header.Get("Location")); err == nil && (x.mutation == nil || x.mutation.MovedTo == "") {
		f.Digest = x.digest(r.Method, to)
	}
	p.missing(x, r, f)
}

// said is the content of a request that is refused, as far as it is short and has come. Content that nobody has begun
// to read is read, so that the request is known if it comes again.
func (x *exchange) said() []byte {
	if x.read {
		content, _ := x.body.Plain()
		return content
	}
	if x.content == nil || !x.content.take() || !x.content.AtHand() {
		return nil
	}
	content, err := io.ReadAll(x.content.ReadCloser)
	x.content.note(content, err == nil)
	return content
}

// identify tells this request from others.
func (x *exchange) identify(r *http.Request) (e ledger.Exchange) {
	if x.key != nil {
		e.Key = x.key.String()
	}
	if r.URL != nil {
		e.Digest = x.digest(r.Method, r.URL)
	}
	return e
}

// digest is that of method, address and content. It is empty where the content was not read whole.
func (x *exchange) digest(method string, address *url.URL) string {
	to := withPort(address.Scheme, address.Host)
	if method != http.MethodConnect {
		to = address.Scheme + "://" + to + address.RequestURI()
	}
	sum := sha256.New()
	_, _ = io.WriteString(sum, method+"\x00"+to+"\x00")
	if x.content != nil {
		content, whole := x.content.digest()
		if !whole {
			return ""
		}
		_, _ = sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// withPort is host:port, with the scheme's own port where none is named.
func withPort(scheme, authority string) string {
	if _, _, err := net.SplitHostPort(authority); err != nil {
		authority = net.JoinHostPort(strings.Trim(authority, "[]"), defaultPort(scheme))
	}
	return strings.ToLower(authority)
}

// digesting digests a request's content while it is read, which may go on beside its answer.
type digesting struct {
	io.ReadCloser

	mu  sync.Mutex
	sum hash.Hash
	// left is how much is still to come, negative if that isn't known.
	left  int64
	whole bool
	// begun says that somebody reads it, taken that its refusal does.
	begun, taken bool
}

// digestContent digests the content of a request that may change something.
func (x *exchange) digestContent(r *http.Request) {
	if !safe(r.Method) && r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
		x.content = &digesting{ReadCloser: r.Body, sum: sha256.New(), left: r.ContentLength}
		r.Body = x.content
	}
}

// errTaken is what reading gives beside a refusal.
var errTaken = errors.New("the request was refused")

// Read implements io.Reader.
func (d *digesting) Read(b []byte) (int, error) {
	d.mu.Lock()
	taken := d.taken
	d.begun = true
	d.mu.Unlock()
	if taken {
		return 0, errTaken
	}
	n, err := d.ReadCloser.Read(b)
	d.note(b[:n], errors.Is(err, io.EOF))
	return n, err
}

// take reports whether nobody has begun to read. From then on nobody else does.
func (d *digesting) take() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun || d.taken {
		return false
	}
	d.taken = true
	return true
}

// note adds what was read; ends says that it was the last.
func (d *digesting) note(content []byte, ends bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = d.sum.Write(content)
	d.left -= int64(len(content))
	d.whole = d.whole || d.left == 0 || ends
}

// digest is that of what was read, and whether that is all.
func (d *digesting) digest() (sum []byte, whole bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sum.Sum(nil), d.whole
}

// AtHand reports whether all of it has come.
func (d *digesting) AtHand() bool {
	here, ok := d.ReadCloser.(interface{ AtHand() bool })
	return ok && here.AtHand()
}
