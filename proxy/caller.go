package proxy

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"keep-proxy/internal/names"
	"keep-proxy/ledger"
)

// caller is on whose behalf a request is made. The zero value is nobody.
type caller struct {
	// token is the digest of a managed run's credentials.
	token string
	// run is the managed run, empty for the unmanaged scope.
	run       string
	unmanaged bool
	workflow  string
	item      string
	attempt   int
	// many says that the run works on many items: item is the request's own, or empty.
	many bool
	// scope is the run's own block scope, empty if it has none.
	scope ledger.BlockScope
}

// managed reports whether a run stands behind the request.
func (c caller) managed() bool { return c.run != "" }

// TokenDigest is how a run's token is kept: the hex SHA-256 of it.
func TokenDigest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

var errCredentials = errors.New("no valid proxy credentials")

// who tells the caller from a request's Proxy-Authorization field (RFC 9110 §11.7.2), or from the
// listener that it came by. The error errCredentials means 407.
func (p *Proxy) who(r *http.Request) (caller, error) {
	values, own := r.Header["Proxy-Authorization"], ownerOf(r.Context())
	if len(values) == 0 && own != "" {
		return p.callerOf(own, runUser)
	}
	if len(values) == 0 {
		if p.config.Unmanaged.Workflow == "" || p.config.Unmanaged.Item == "" {
			return caller{}, errCredentials
		}
		return caller{unmanaged: true, workflow: p.config.Unmanaged.Workflow, item: p.config.Unmanaged.Item}, nil
	}
	user, token, ok := basicCredentials(values)
	if !ok {
		return caller{}, errCredentials
	}
	digest := TokenDigest(token)
	if own != "" && digest != own {
		return caller{}, errCredentials
	}
	return p.callerOf(digest, user)
}

// runUser is the user name of proxy credentials that name no item.
const runUser = "run"

// callerOf is the run with this token digest, for the user name of the credentials. That is
// runUser, or for a run of many items an item's name in percent-encoding (RFC 3986 §2.1). The error
// errCredentials means 407.
func (p *Proxy) callerOf(digest, user string) (caller, error) {
	run, _, err := p.ledger.StandingByToken(digest)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return caller{}, errCredentials
	case err != nil:
		return caller{}, err
	}
	p.ledger.Traffic(run)
	c := caller{
		token: digest, run: run.ID, workflow: run.Workflow, item: run.Item, attempt: run.Attempt,
		many: run.Many(), scope: run.BlockScope,
	}
	if user == runUser {
		return c, nil
	}
	item, err := itemName(user)
	if err != nil || !c.many {
		return caller{}, errCredentials
	}
	c.item = item
	return c, nil
}

// basicCredentials returns user name and password of Basic credentials (RFC 7617).
func basicCredentials(values []string) (user, password string, ok bool) {
	if len(values) != 1 {
		return "", "", false
	}
	scheme, encoded, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Basic") {
		return "", "", false
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return "", "", false
	}
	user, password, ok = strings.Cut(string(decoded), ":")
	return user, password, ok && user != "" && password != ""
}

// problemCredentials is what the log calls 407, which has no body and so no problem.
const problemCredentials problem = "credentials"

// challenge asks for proxy credentials (RFC 9110 §11.7.1). Its body is empty and its length is
// given. So clients which send credentials only when asked can use the connection again.
func (p *Proxy) challenge(w http.ResponseWriter, r *http.Request) {
	p.early(w, r, caller{}, problemCredentials, func(x *exchange) {
		x.answer.Header().Set("Proxy-Authenticate", `Basic realm="keep-proxy"`)
		x.answer.Header().Set("Content-Length", "0")
		x.answer.WriteHeader(http.StatusProxyAuthRequired)
	})
}

// errItemName says what an item's name may be.
var errItemName = errors.New("an item's name is 1 to 256 bytes of UTF-8 in NFC and percent-encoding, without control characters, " +
	"without white space at its ends, and doesn't begin with \"once:\"")

// itemName reads an item's name in percent-encoding (RFC 3986 §2.1).
func itemName(text string) (string, error) {
	name, err := url.PathUnescape(text)
	if err != nil {
		return "", errItemName
	}
	if what, how := names.ItemFault(name); what != "" {
		return "", fmt.Errorf("%w; this one is refused: %s; %s", errItemName, what, how)
	}
	return name, nil
}

// nameItem takes the item of a request from its Keep-Item fields. A run of one item may name only
// its own. Where the proxy's user names an item, both must agree.
func nameItem(x *exchange, values []string) *refusal {
	if len(values) == 0 {
		return nil
	}
	if len(values) > 1 {
		return refuse(problemAmbiguous, "Keep-Item is given more than once; nothing was sent.")
	}
	name, err := itemName(values[0])
	if err != nil {
		return refuse(problemIdentity, "Keep-Item: "+err.Error()+"; nothing was sent.")
	}
	c := &x.caller
	switch {
	case c.unmanaged, c.many && c.item == "":
		c.item = name
	case c.item != name:
		return refuse(problemIdentity, "Keep-Item names "+quoted(name)+", but this request belongs to item "+quoted(c.item)+
			"; nothing was sent. "+oneName(c.many))
	}
	return nil
}

// oneName says how a request comes to the item that it means.
func oneName(many bool) string {
	if many {
		return "That is the user of its proxy address: name the item there or in Keep-Item."
	}
	return "Open a run with items: many to work on several."
}
