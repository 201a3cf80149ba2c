package isolate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// outside knows names under shop.test, and can look up none under broken.test.
func outside(_ context.Context, name string) (bool, error) {
	if strings.HasSuffix(name, ".broken.test") {
		return false, errors.New("no server answers")
	}
	return strings.HasSuffix(name, ".shop.test"), nil
}

// query is one question as clients ask it.
func query(name string, typ dnsmessage.Type) dnsmessage.Message {
	return dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 4711, RecursionDesired: true, AuthenticData: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: typ, Class: dnsmessage.ClassINET}},
	}
}

// ask answers a query, and fails where there is no answer to it.
func ask(t *testing.T, n *Names, q dnsmessage.Message) dnsmessage.Message {
	t.Helper()
	msg, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	var reply dnsmessage.Message
	if err := reply.Unpack(n.answer(t.Context(), msg)); err != nil {
		t.Fatalf("answer to %v: %v", q.Questions, err)
	}
	if !reply.Response || reply.ID != q.ID || !reply.RecursionAvailable || reply.AuthenticData {
		t.Errorf("header: %+v", reply.Header)
	}
	return reply
}

// told is what an answer says: its code, and its records.
func told(reply dnsmessage.Message) string {
	words := []string{strings.TrimPrefix(reply.RCode.String(), "RCode")}
	for _, r := range reply.Answers {
		switch body := r.Body.(type) {
		case *dnsmessage.AResource:
			words = append(words, netip.AddrFrom4(body.A).String())
		case *dnsmessage.AAAAResource:
			words = append(words, netip.AddrFrom16(body.AAAA).String())
		case *dnsmessage.PTRResource:
			words = append(words, body.PTR.String())
		default:
			words = append(words, r.GoString())
		}
	}
	return strings.Join(words, " ")
}

func TestAnswers(t *testing.T) {
	n := NewNames(outside)
	const six = "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.2.0.0.0.1.0.0.2.ip6.arpa."
	for _, c := range []struct { // in this order
		what string
		name string
		typ  dnsmessage.Type
		want string
	}{
		{"the first name", "api.shop.test.", dnsmessage.TypeA, "Success 198.18.0.2"},
		{"its other address", "api.shop.test.", dnsmessage.TypeAAAA, "Success 2001:2::2"},
		{"another name", "pay.shop.test.", dnsmessage.TypeAAAA, "Success 2001:2::3"},
		{"its other address", "pay.shop.test.", dnsmessage.TypeA, "Success 198.18.0.3"},
		{"the first in another case", "aPi.Shop.TEST.", dnsmessage.TypeA, "Success 198.18.0.2"},
		{"a name that doesn't exist", "api.shop.test.corp.test.", dnsmessage.TypeA, "NameError"},
		{"a name that can't be looked up", "api.broken.test.", dnsmessage.TypeA, "ServerFailure"},
		{"another type of a name", "api.shop.test.", dnsmessage.TypeHTTPS, "Success"},
		{"another type of a new name", "mail.shop.test.", dnsmessage.TypeMX, "Success"},
		{"all types", "api.shop.test.", dnsmessage.TypeALL, "Success"},
		{"another type of a name that doesn't exist", "mail.corp.test.", dnsmessage.TypeMX, "NameError"},
		{"a service", "_https._tcp.shop.test.", dnsmessage.TypeSRV, "Success"},
		{"an IPv4 address's name", "2.0.18.198.in-addr.arpa.", dnsmessage.TypePTR, "Success api.shop.test."},
		{"in capitals", "3.0.18.198.IN-ADDR.ARPA.", dnsmessage.TypePTR, "Success pay.shop.test."},
		{"an IPv6 address's name", "3.0.0.0.0." + six, dnsmessage.TypePTR, "Success pay.shop.test."},
		{"an address that stands for no name", "200.0.18.198.in-addr.arpa.", dnsmessage.TypePTR, "NameError"},
		{"the namespace's own address", "1.0.0.0.0." + six, dnsmessage.TypePTR, "NameError"},
		{"a real address", "3.2.1.10.in-addr.arpa.", dnsmessage.TypePTR, "NameError"},
		{"a name's name", "api.shop.test.", dnsmessage.TypePTR, "Success"},
		{"an address", "10.1.2.3.", dnsmessage.TypeA, "NameError"},
		{"the root", ".", dnsmessage.TypeNS, "NameError"},
		{"what doesn't fit into a request", "a b\r\n.shop.test.", dnsmessage.TypeA, "NameError"},
		{"letters that aren't ASCII", "\u212Aiosk.shop.test.", dnsmessage.TypeA, "NameError"},
	} {
		t.Run(c.what, func(t *testing.T) {
			q := query(c.name, c.typ)
			reply := ask(t, n, q)
			if got := told(reply); got != c.want {
				t.Errorf("%s %v: %s; want %s", c.name, c.typ, got, c.want)
			}
			if !reflect.DeepEqual(reply.Questions, q.Questions) {
				t.Errorf("question: %v; want %v as it came", reply.Questions, q.Questions)
			}
			for _, r := range reply.Answers {
				if r.Header.Name != q.Questions[0].Name || r.Header.TTL == 0 || r.Header.TTL > 60 {
					t.Errorf("record: %+v", r.Header)
				}
			}
		})
	}
}

func TestOtherMessages(t *testing.T) {
	two := query("api.shop.test.", dnsmessage.TypeA)
	two.Questions = append(two.Questions, two.Questions...)
	update := query("api.shop.test.", dnsmessage.TypeA)
	update.OpCode = 5
	chaos := query("api.shop.test.", dnsmessage.TypeA)
	chaos.Questions[0].Class = dnsmessage.ClassCHAOS
	for _, c := range []struct {
		what string
		q    dnsmessage.Message
		want string
	}{
		{"two questions", two, "FormatError"},
		{"no question", dnsmessage.Message{Header: dnsmessage.Header{ID: 7}}, "FormatError"},
		{"another operation", update, "NotImplemented"},
		{"another class", chaos, "Success"},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := told(ask(t, NewNames(outside), c.q)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	t.Run("a response gets no answer", func(t *testing.T) {
		q := query("api.shop.test.", dnsmessage.TypeA)
		q.Response = true
		msg, _ := q.Pack()
		if reply := NewNames(outside).answer(t.Context(), msg); reply != nil {
			t.Errorf("answered: %x", reply)
		}
	})
}

func TestOptionRecords(t *testing.T) {
	q := query("api.shop.test.", dnsmessage.TypeA)
	if reply := ask(t, NewNames(outside), q); len(reply.Additionals) != 0 {
		t.Errorf("without one: %v", reply.Additionals)
	}
	var header dnsmessage.ResourceHeader
	_ = header.SetEDNS0(1232, dnsmessage.RCodeSuccess, true)
	q.Additionals = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.OPTResource{
		Options: []dnsmessage.Option{{Code: 10, Data: []byte("a cookie")}},
	}}}
	reply := ask(t, NewNames(outside), q)
	if got := told(reply); got != "Success 198.18.0.2" {
		t.Errorf("got %s", got)
	}
	if len(reply.Additionals) != 1 {
		t.Fatalf("with one: %v", reply.Additionals)
	}
	opt := reply.Additionals[0]
	if body, ok := opt.Body.(*dnsmessage.OPTResource); !ok || len(body.Options) != 0 || opt.Header.Class < 512 || !opt.Header.DNSSECAllowed() {
		t.Errorf("got %v", opt)
	}
}

func TestOf(t *testing.T) {
	n := NewNames(outside)
	if n.Of(netip.MustParseAddr("198.18.0.2")) != "" {
		t.Error("an address stands for a name before one was given")
	}
	ask(t, n, query("api.shop.test.", dnsmessage.TypeA))
	for addr, want := range map[string]string{
		"198.18.0.2":        "api.shop.test",
		"::ffff:198.18.0.2": "api.shop.test",
		"2001:2::2":         "api.shop.test",
		"198.18.0.0":        "",
		"198.18.0.1":        "",
		"2001:2::":          "",
		"2001:2::1":         "",
		"198.18.0.3":        "",
		"2001:2:0:1::2":     "",
		"10.1.2.3":          "",
		"2001:db8::1":       "",
	} {
		if got := n.Of(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
	if got := n.Of(netip.Addr{}); got != "" {
		t.Errorf("no address: %q", got)
	}
}

func TestNamesKeepTheirAddresses(t *testing.T) {
	var asked []string
	fails := false
	n := NewNames(func(_ context.Context, name string) (bool, error) {
		asked = append(asked, name)
		if fails {
			return false, errors.New("no server answers")
		}
		return true, nil
	})
	for _, want := range []string{"Success 198.18.0.2", "Success 198.18.0.2"} {
		if got := told(ask(t, n, query("API.shop.test.", dnsmessage.TypeA))); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		fails = true
	}
	if want := []string{"api.shop.test"}; !slices.Equal(asked, want) {
		t.Errorf("looked up %q, want %q", asked, want)
	}
}

func TestNamesAskedAtOnceGetOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := make(chan struct{})
		n := NewNames(func(context.Context, string) (bool, error) { <-begin; return true, nil })
		var asking sync.WaitGroup
		got := make([]string, 8)
		for i := range got {
			asking.Go(func() { got[i] = told(ask(t, n, query("api.shop.test.", dnsmessage.TypeA))) })
		}
		synctest.Wait() // all are looked up
		close(begin)
		asking.Wait()
		if got = slices.Compact(got); !slices.Equal(got, []string{"Success 198.18.0.2"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestNoAddressStandsForTwoNames(t *testing.T) {
	n := NewNames(outside)
	seen := map[netip.Addr]bool{}
	// given is how many names have addresses. Each next hundred crosses a byte's border, or is the last.
	for _, given := range []int{200, 65_500, 131_070 - 100} {
		for i := len(n.names); i < 2*given; i++ {
			n.names[netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})] = "filling.shop.test"
		}
		for i := range 100 {
			addrs, ok, err := n.addresses(t.Context(), fmt.Sprintf("n%d.shop.test", given+i))
			if err != nil || !ok || seen[addrs[0]] || seen[addrs[1]] {
				t.Fatalf("name %d: %v, %v, %v", given+i, addrs, ok, err)
			}
			seen[addrs[0]], seen[addrs[1]] = true, true
		}
	}
	for name, want := range map[string]string{
		"n200.shop.test.":       "Success 198.18.0.202",
		"n65534.shop.test.":     "Success 198.19.0.0",
		"n131069.shop.test.":    "Success 198.19.255.255",
		"one-more.shop.test.":   "ServerFailure",
		"one-more.corp.test.":   "NameError",
		"one-more.broken.test.": "ServerFailure",
	} {
		if got := told(ask(t, n, query(name, dnsmessage.TypeA))); got != want {
			t.Errorf("%s: %s; want %s", name, got, want)
		}
	}
	if got := told(ask(t, n, query("n131069.shop.test.", dnsmessage.TypeAAAA))); got != "Success 2001:2::1:ffff" {
		t.Errorf("the last: %s", got)
	}
	const six = "f.f.f.f.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.2.0.0.0.1.0.0.2.ip6.arpa."
	for _, name := range []string{six, "255.255.19.198.in-addr.arpa."} {
		if got := told(ask(t, n, query(name, dnsmessage.TypePTR))); got != "Success n131069.shop.test." {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestLookupEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		n := NewNames(func(ctx context.Context, _ string) (bool, error) { <-ctx.Done(); return false, ctx.Err() })
		if got := told(ask(t, n, query("slow.shop.test.", dnsmessage.TypeA))); got != "ServerFailure" {
			t.Errorf("got %s", got)
		}
		if took := time.Since(began); took < 5*time.Second || took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func FuzzNames(f *testing.F) {
	for _, q := range []dnsmessage.Message{
		query("api.shop.test.", dnsmessage.TypeA), query("2.0.18.198.in-addr.arpa.", dnsmessage.TypePTR), query(".", dnsmessage.TypeNS),
	} {
		msg, err := q.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(msg)
	}
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, msg []byte) {
		n := NewNames(outside)
		packed := n.answer(t.Context(), msg)
		if packed == nil {
			return
		}
		var asked, reply dnsmessage.Message
		if err := reply.Unpack(packed); err != nil {
			t.Fatalf("answer: %v", err)
		}
		if err := asked.Unpack(msg); err != nil || asked.Response || !reply.Response || asked.ID != reply.ID {
			t.Fatalf("%+v was answered by %+v", asked.Header, reply.Header)
		}
		if len(packed) > 512 {
			t.Errorf("the answer has %d bytes", len(packed))
		}
		if len(reply.Questions) > 0 && !reflect.DeepEqual(asked.Questions, reply.Questions) {
			t.Errorf("question: %v; asked %v", reply.Questions, asked.Questions)
		}
	})
}
