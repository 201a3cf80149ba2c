package isolate

import (
	"context"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// answer makes the answer to a message, nil if it is no query. It is below the 512 bytes that each client takes by UDP.
func (n *Names) answer(ctx context.Context, msg []byte) []byte {
	var query dnsmessage.Message
	if err := query.Unpack(msg); err != nil || query.Response {
		return nil
	}
	reply := dnsmessage.Message{Header: query.Header, Questions: query.Questions}
	reply.Response, reply.RecursionAvailable, reply.AuthenticData = true, true, false
	switch {
	case len(query.Questions) != 1: // RFC 9619
		reply.RCode, reply.Questions = dnsmessage.RCodeFormatError, nil
	case query.OpCode != 0:
		reply.RCode = dnsmessage.RCodeNotImplemented
	default:
		n.resolve(ctx, query.Questions[0], &reply)
	}
	for _, r := range query.Additionals {
		if r.Header.Type == dnsmessage.TypeOPT { // RFC 6891 §7: one is answered by one
			reply.Additionals = []dnsmessage.Resource{{Header: r.Header, Body: &dnsmessage.OPTResource{}}}
		}
	}
	packed, _ := reply.Pack() // what does not fit gets no answer
	return packed
}

// resolve answers a question. What a name has besides addresses is answered empty. A lookup may take as long as
// resolvers ask: twice, for 5 s each. Clients keep an answer for a minute only: in the next run it would be wrong.
func (n *Names) resolve(ctx context.Context, q dnsmessage.Question, reply *dnsmessage.Message) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60}
	addrs, ok, err := n.addresses(ctx, q.Name.String())
	switch host := n.Of(addrs[0]); {
	case !ok && err != nil:
		reply.RCode = dnsmessage.RCodeServerFailure
	case !ok:
		reply.RCode = dnsmessage.RCodeNameError
	case q.Class != dnsmessage.ClassINET:
	case q.Type == dnsmessage.TypeA:
		reply.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: addrs[0].As4()}}}
	case q.Type == dnsmessage.TypeAAAA:
		reply.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: addrs[1].As16()}}}
	case q.Type == dnsmessage.TypePTR && strings.HasSuffix(strings.ToLower(q.Name.String()), ".arpa."):
		reply.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.PTRResource{PTR: dnsmessage.MustNewName(host + ".")}}}
	}
}
