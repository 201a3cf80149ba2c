package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// byParts reads parts of a multipart body.
const byParts = connectorHead + `
  - name: up
    match: {method: POST, path: /up}
    effect: mutation
    identity: {channel: multipart.fields.channel, file: multipart.?files.?doc.?sha256}
    payload: {ignore: [multipart.fields.at], minor: [multipart.fields.note], normalise: {multipart.fields.title: case}}
    reconcile: [{none: why}]
    manual_check: "{multipart.fields.channel}, {multipart.files.doc.filename} of {multipart.files.doc.size} bytes, {multipart.files.doc.type}"
  - name: all
    match: {method: POST, path: /all}
    effect: mutation
    identity: {of: "multipart.parts.filter(p, p.?name.orValue('') == 'to').map(p, p.text)"}
    reconcile: [{none: why}]
    manual_check: look
`

// onePart is a part as clients write it: its name and other parameters, its type, its content.
type onePart struct{ params, media, data string }

// multipartOf is a body of parts.
func multipartOf(boundary string, parts ...onePart) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\r\n", boundary)
		if p.params != "" {
			fmt.Fprintf(&b, "Content-Disposition: form-data; %s\r\n", p.params)
		}
		if p.media != "" {
			fmt.Fprintf(&b, "Content-Type: %s\r\n", p.media)
		}
		fmt.Fprintf(&b, "\r\n%s\r\n", p.data)
	}
	fmt.Fprintf(&b, "--%s--\r\n", boundary)
	return b.String()
}

// sendParts is a request with parts.
func sendParts(tb testing.TB, path, boundary string, parts ...onePart) *Request {
	tb.Helper()
	return request(tb, "POST https://api.test"+path, multipartOf(boundary, parts...), "Content-Type: multipart/form-data; boundary="+boundary)
}

var (
	channel = onePart{`name="channel"`, "", "C1"}
	doc     = onePart{`name="doc"; filename="a.pdf"`, "application/pdf", "%PDF\x00\xff"}
)

func TestPartsAreReadByName(t *testing.T) {
	t.Parallel()
	set := load(t, byParts)
	req := sendParts(t, "/up", "b1", channel, doc)
	d := derive(t, set, req)
	if want := `{"channel":"C1","file":"` + hexDigest([]byte(doc.data)) + `"}`; identityOf(d) != want {
		t.Errorf("identity %s, want %s", identityOf(d), want)
	}
	op := set.Match(req).Operation
	if got := op.ManualCheckText(Env{Request: req}); got != "C1, a.pdf of 6 bytes, application/pdf" {
		t.Error(got)
	}
	// What is no text in UTF-8 is a file, also without a name of its own.
	raw := sendParts(t, "/up", "b1", channel, onePart{`name="doc"`, "", "\xff"})
	if got := identityOf(derive(t, set, raw)); !strings.Contains(got, hexDigest([]byte("\xff"))) {
		t.Error(got)
	}
	if got := identityOf(derive(t, set, sendParts(t, "/all", "bnd", onePart{`name="to"`, "", "a"}, channel, onePart{`name="to"`, "", "b"}))); got != `{"of":["a","b"]}` {
		t.Error(got)
	}
}

func TestWhichDifferencesOfPartsCount(t *testing.T) {
	t.Parallel()
	set := load(t, byParts)
	first := sendParts(t, "/up", "b1", channel, onePart{`name="title"`, "", "Hi"}, doc)
	op := set.Match(first).Operation
	for name, c := range map[string]struct {
		boundary string
		parts    []onePart
		want     Likeness
		place    string
	}{
		"another boundary":         {"b2", []onePart{channel, {`name="title"`, "", "Hi"}, doc}, Equivalent, ""},
		"another order of names":   {"b1", []onePart{doc, {`name="title"`, "", "Hi"}, channel}, Equivalent, ""},
		"a type that says no more": {"b1", []onePart{channel, {`name="title"`, "text/plain; charset=utf-8", "Hi"}, doc}, Equivalent, ""},
		"what is ignored":          {"b1", []onePart{channel, {`name="title"`, "", "Hi"}, doc, {`name="at"`, "", "now"}}, Equivalent, ""},
		"what is normalised":       {"b1", []onePart{channel, {`name="title"`, "", "HI"}, doc}, Equivalent, "multipart.fields.title"},
		"what is minor":            {"b1", []onePart{channel, {`name="title"`, "", "Hi"}, doc, {`name="note"`, "", "n"}}, Minor, "multipart.fields.note"},
		"another field":            {"b1", []onePart{channel, {`name="title"`, "", "Ho"}, doc}, Significant, "multipart.fields.title"},
		"another name of a file":   {"b1", []onePart{channel, {`name="title"`, "", "Hi"}, {`name="doc"; filename="b.pdf"`, doc.media, doc.data}}, Significant, "multipart.files.doc"},
		"another type of a field":  {"b1", []onePart{channel, {`name="title"`, "application/json", "Hi"}, doc}, Significant, "multipart.types.title"},
		"a part without a name":    {"b1", []onePart{channel, {`name="title"`, "", "Hi"}, doc, {"", "text/plain", "x"}}, Significant, "multipart['']"},
	} {
		other := sendParts(t, "/up", c.boundary, c.parts...)
		a, b := derive(t, set, first), derive(t, set, other)
		got := op.Compare(first, other)
		if got.Likeness != c.want || c.place != "" && (len(got.Changes) != 1 || got.Changes[0].Place != c.place) {
			t.Errorf("%s: %+v", name, got)
		}
		if (a.SignificantDigest == b.SignificantDigest) != (c.want != Significant) {
			t.Errorf("%s: the digests say otherwise", name)
		}
	}
}

func TestPartsThatCannotBeReadInOneWayAreRefused(t *testing.T) {
	t.Parallel()
	set := load(t, byParts)
	many := make([]onePart, maxParts+1)
	for i := range many {
		many[i] = onePart{fmt.Sprintf(`name="f%d"`, i), "", ""}
	}
	sound := multipartOf("bnd", channel, doc)
	for name, c := range map[string]struct {
		body    string
		problem Problem
		part    string
	}{
		"a name that comes again":     {multipartOf("bnd", channel, channel), ProblemAmbiguous, "repeats the name"},
		"a file that comes again":     {multipartOf("bnd", channel, doc, doc), ProblemAmbiguous, "repeats the name"},
		"a name in another case":      {multipartOf("bnd", onePart{`name="Channel"`, "", "C1"}, channel), ProblemAmbiguous, "only in case"},
		"more parts than can be":      {multipartOf("bnd", many...), ProblemAmbiguous, "1000 parts"},
		"a boundary in a text":        {multipartOf("bnd", channel, onePart{`name="x"`, "", "bnd"}), ProblemAmbiguous, "boundary"},
		"no end":                      {strings.TrimSuffix(sound, "--bnd--\r\n"), ProblemAmbiguous, "boundary"},
		"a transfer encoding":         {strings.Replace(sound, "\r\n\r\nC1", "\r\nContent-Transfer-Encoding: base64\r\n\r\nC1", 1), ProblemAmbiguous, "transfer encoding"},
		"a field that comes again":    {strings.Replace(sound, "Content-Disposition", "Content-Disposition: form-data; name=\"x\"\r\nContent-Disposition", 1), ProblemAmbiguous, "repeats"},
		"a name in pieces":            {multipartOf("bnd", onePart{`name*0="chan"; name*1="nel"`, "", "C1"}), ProblemAmbiguous, "can't be read"},
		"fields that can't be read":   {strings.Replace(sound, "Content-Disposition:", "Content-Disposition", 1), ProblemAmbiguous, "fields before a part"},
		"fields that never end":       {"--bnd\r\n" + strings.Repeat("x: y\r\n", 20_000) + "\r\n\r\n--bnd--\r\n", ProblemAmbiguous, "fields before a part"},
		"a part that isn't there":     {multipartOf("bnd", doc), ProblemIdentity, "multipart.fields.channel"},
		"a name that is no UTF-8":     {multipartOf("bnd", channel, onePart{"name=\"\xff\"", "", ""}), ProblemAmbiguous, "not UTF-8"},
		"another type than multipart": {"", ProblemIdentity, "multipart.fields.channel"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := "multipart/form-data; boundary=bnd"
			if c.body == "" {
				c.body, kind = sound, "text/plain"
			}
			req := request(t, "POST https://api.test/up", c.body, "Content-Type: "+kind)
			m := set.Match(req)
			_, refusal := m.Operation.Derive(req, m)
			wantRefusal(t, refusal, c.problem, c.part)
		})
	}
}

// Ten thousand parts, and long ones, take no time to speak of.
func TestManyPartsTakeBoundedTime(t *testing.T) {
	t.Parallel()
	many := make([]onePart, 10_000)
	for i := range many {
		many[i] = onePart{`name="x"`, "", strings.Repeat("y", 100)}
	}
	req := sendParts(t, "/up", "bnd", many...)
	begun := time.Now()
	set := load(t, byParts)
	m := set.Match(req)
	if _, refusal := m.Operation.Derive(req, m); refusal == nil || time.Since(begun) > 5*time.Second {
		t.Errorf("%v in %v", refusal, time.Since(begun))
	}
}

// Nothing is parsed that no rule reads.
func TestPartsThatNoRuleReadsAreNotParsed(t *testing.T) {
	t.Parallel()
	set := load(t, withOperation("identity: {of: body_sha256}"))
	req := sendParts(t, "/things", "bnd", channel, doc)
	derive(t, set, req)
	req.read().views.Range(func(by, _ any) bool { t.Errorf("%v was read", by); return true })
}

func FuzzMultipart(f *testing.F) {
	f.Add("bnd", multipartOf("bnd", channel, doc))
	f.Add("bnd", multipartOf("bnd", onePart{`name="a"; filename*=UTF-8''%e2%82%ac`, "text/plain; charset=utf-8", "x"}, channel))
	f.Add("bnd", parted("bnd", "\n", "hi"))
	f.Fuzz(func(t *testing.T, boundary, body string) {
		made := func() view {
			c := ofForm(boundary, body)
			return c.view("multipart", c.parseMultipart)
		}
		v, again := made(), made()
		if v.problem != nil && (v.tree != nil || v.pairs != nil) {
			t.Fatal("a problem, and parts")
		}
		if v.tree == nil {
			return
		}
		if a, b := appendCanonical(nil, v.tree, nil), appendCanonical(nil, again.tree, nil); string(a) != string(b) {
			t.Fatalf("read as %s and as %s", a, b)
		}
		parts, _ := v.tree.member("parts")
		if len(parts.items) > maxParts || len(v.pairs.list) < len(parts.items) {
			t.Fatalf("%d parts, %d of them compared", len(parts.items), len(v.pairs.list))
		}
	})
}
