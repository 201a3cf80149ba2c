package hostile

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// leastAnswers is how many answers there must be.
const leastAnswers = 80

// good is the content of the scripts that hold a whole answer.
const good = `{"ok":true}`

// lie is one line of testdata/answers.tsv.
type lie struct {
	name, section string
	// mutation is what may become of one: applied, failed, unknown or committed.
	mutation []string
	// read is what a reader gets: a status, or cut.
	read   []string
	script string
}

func loadAnswers(t *testing.T) (all []lie) {
	t.Helper()
	for _, cells := range tableOf(t, "testdata/answers.tsv", 5) {
		all = append(all, lie{cells[0], cells[1], strings.Split(cells[2], ","), strings.Split(cells[3], ","), unescape(t, cells[4])})
	}
	return all
}

// What is asked of the upstream that lies: an upload is an ignored request whose content is streamed.
const (
	aMutation = "mutation"
	aRead     = "read"
	anUpload  = "upload"
)

var asks = []string{aMutation, aRead, anUpload}

// TestAnswers has an upstream give every answer to a mutation, to a read and to an upload. After
// each, another request must get its own answer.
func TestAnswers(t *testing.T) {
	t.Parallel()
	all := loadAnswers(t)
	if len(all) < leastAnswers {
		t.Fatalf("%d answers, want at least %d", len(all), leastAnswers)
	}
	scripts := map[string]string{}
	for i, l := range all {
		scripts[strconv.Itoa(i)] = l.script
	}
	u := newLiar(t, scripts)
	w := newWorld(t, "", u.authority())
	for i, l := range all {
		for _, as := range asks {
			if err := l.try(t, w, u, strconv.Itoa(i), as); err != nil {
				t.Errorf("%s (%s), %s: %v", l.name, l.section, as, err)
			}
			if err := clean(t, w, u, fmt.Sprintf("clean-%d-%s", i, as), as); err != nil {
				t.Errorf("%s (%s), %s: the next request %v", l.name, l.section, as, err)
			}
		}
	}
}

// ask sends one request by the proxy and reads its answer.
func ask(t *testing.T, w *world, u *liar, name, as string) (answer, error) {
	t.Helper()
	c := w.dial(t)
	defer func() { _ = c.Close() }()
	base := "http://" + u.authority()
	switch as {
	case aMutation:
		body := fmt.Sprintf(`{"to":%q}`, name)
		_, _ = fmt.Fprintf(c, "POST %s/pull?v=%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", base, name, u.authority(), len(body), body)
	case anUpload:
		_, _ = fmt.Fprintf(c, "POST %s/tell?v=%s HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n", base, name, u.authority())
	default:
		_, _ = fmt.Fprintf(c, "GET %s/look?v=%s HTTP/1.1\r\nHost: %s\r\n\r\n", base, name, u.authority())
	}
	return c.readFinal()
}

func (l *lie) try(t *testing.T, w *world, u *liar, name, as string) error {
	t.Helper()
	a, err := ask(t, w, u, name, as)
	if strings.Contains(l.script, "{LATER}") {
		u.later <- struct{}{}
		<-u.said
	}
	for _, field := range []string{"Alt-Svc", "Http2-Settings", "X-Hop", "Proxy-Authenticate", "Upgrade", "Keep-Replayed"} {
		if a.header.Get(field) != "" {
			return fmt.Errorf("the answer has %s: %q", field, a.header.Get(field))
		}
	}
	if err := a.wellFormed(); err != nil {
		return err
	}
	if strings.Contains(a.body, "poison") {
		return fmt.Errorf("the answer is another's: %q", a.body)
	}
	if err == nil && a.status == http.StatusOK && strings.Contains(l.script, good) && a.body != good {
		return fmt.Errorf("content %q, want %q", a.body, good)
	}
	if as == aMutation {
		return l.became(a, err)
	}
	got := strconv.Itoa(a.status)
	if err != nil {
		got = "cut"
	}
	if !slices.Contains(l.read, got) {
		return fmt.Errorf("the reader got %s, want %v: %.200q, %w", got, l.read, a.body, err)
	}
	if a.header.Get("Keep-State") != "" || a.header.Get("Keep-Mutation") != "" {
		return fmt.Errorf("a read's answer speaks of a mutation: %v", a.header)
	}
	return nil
}

// wellFormed holds an answer against what RFC 9110 and RFC 9112 ask of whoever sends or
// forwards one. An answer that was cut before its head has none.
func (a answer) wellFormed() error {
	_, length := a.header["Content-Length"]
	switch {
	case a.status == 0:
		return nil
	case a.proto != "HTTP/1.1":
		return fmt.Errorf("the answer is %s (RFC 9112 §2.3)", a.proto)
	case a.header.Get("Date") == "":
		return errors.New("the answer has no Date (RFC 9110 §6.6.1)")
	case a.status == http.StatusNoContent && length:
		return errors.New("a length where there is no content (RFC 9110 §8.6)")
	case len(a.trailer["X-Hop"]) > 0:
		return errors.New("a trailer of one connection (RFC 9110 §7.6.1)")
	}
	return nil
}

// became holds what the script was told of its mutation against what is expected.
func (l *lie) became(a answer, err error) error {
	got := a.header.Get("Keep-State")
	switch problem(a) {
	case "unknown-outcome":
		got = "unknown"
	case "no-result":
		got = "committed"
	case "not-sent":
		got = "failed"
	}
	if got == "applied" && err != nil && slices.Contains(l.read, "cut") {
		// Too long to be kept, it went to the script as it came.
		err = nil
	}
	if err != nil || !slices.Contains(l.mutation, got) {
		return fmt.Errorf("became %q, want %v: %d %.200q, %w", got, l.mutation, a.status, a.body, err)
	}
	return nil
}

// problem is the name of a refusal; empty for an answer that is none.
func problem(a answer) string {
	var p struct {
		Type string `json:"type"`
	}
	if a.header.Get("Content-Type") != "application/problem+json" || json.Unmarshal([]byte(a.body), &p) != nil {
		return ""
	}
	return strings.TrimPrefix(p.Type, "urn:keep:problem:")
}

// clean asks for an answer that nobody lies about.
func clean(t *testing.T, w *world, u *liar, name, as string) error {
	t.Helper()
	a, err := ask(t, w, u, name, as)
	if want := fmt.Sprintf(`{"clean":%q}`, name); err != nil || a.status != http.StatusOK || a.body != want {
		return fmt.Errorf("got %d %q, want %q, %w", a.status, a.body, want, err)
	}
	return nil
}
