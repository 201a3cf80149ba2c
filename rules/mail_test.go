package rules

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// byMail sends mails, in JSON or as the body.
const byMail = connectorHead + `
  - name: send
    match:
      - {method: POST, path: /send, mail: {from: json.raw, encoding: base64url}}
      - {method: POST, path: /upload, mail: {from: body}}
    effect: mutation
    identity: {to: addresses(mail.to + mail.cc + mail.bcc), subject: mail.subject}
    payload: {ignore: ["mail.headers['x-mailer']"], minor: [mail.in_reply_to], normalise: {mail.text: whitespace, mail.html: html}}
    reconcile: [{none: why}]
    manual_check: "{mail.subject} from {mail.from} to {mail.to}: {mail.?attachments[0].name}, {size(mail.bytes)}"
  - name: plain
    match: {method: POST, path: /plain, mail: {from: json.mail}, when: mail.subject != 'not this'}
    effect: mutation
    identity: {text: mail.text, html: mail.?html, headers: mail.headers, attachments: mail.attachments, reply: mail.reply_to}
    reconcile: [{none: why}]
    manual_check: look
`

// simpleMail is a mail of one text. More fields end with a line end.
func simpleMail(more, text string) string {
	return strings.ReplaceAll("From: a@x.test\nTo: b@x.test\nSubject: Hi\n"+more+"\n"+text, "\n", "\r\n")
}

func jsonMail(tb testing.TB, mail, more string) *Request {
	tb.Helper()
	body := `{"raw":"` + base64.URLEncoding.EncodeToString([]byte(mail)) + `"` + more + `}`
	return request(tb, "POST https://api.test/send", body, "Content-Type: application/json")
}

func bodyMail(tb testing.TB, mail string) *Request {
	tb.Helper()
	return request(tb, "POST https://api.test/upload", mail, "Content-Type: message/rfc822")
}

func plainMail(tb testing.TB, mail string) *Request {
	tb.Helper()
	return request(tb, "POST https://api.test/plain", `{"mail":`+string(appendString(nil, mail))+`}`, "Content-Type: application/json")
}

const wholeMail = "From: =?utf-8?q?J=C3=BCrgen?= <J@X.test>\r\n" +
	"To: \"B, C\" <b@x.test>,\r\n c@x.test\r\nCc: d@x.test\r\nReply-To: r@x.test\r\nBcc:\r\n" +
	"Subject: =?utf-8?B?w4Q=?=\r\n =?utf-8?B?w5Y=?= folded\r\n over lines\r\n" +
	"Date: Mon, 02 Jan 2006 15:04:05 -0700\r\nMessage-ID: <1@x>\r\nX-Mailer: one\r\nX-Two: =?iso-8859-1?q?=E9?=\r\nMIME-Version: 1.0\r\n" +
	"Content-Type: multipart/mixed; boundary=outer\r\n\r\npreamble\r\n--outer\r\n" +
	"Content-Type: multipart/alternative; boundary=\"inner\"\r\n\r\n--inner\r\n" +
	"Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\ncaf=E9 soft=\r\nbreak\r\nline\r\n--inner\r\n" +
	"Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nPGI+aGk8L2I+\r\n--inner--\r\n--outer\r\n" +
	"Content-Type: application/pdf\r\nContent-Disposition: attachment; filename*=UTF-8''%e2%82%ac.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\nAAEC\r\n--outer\r\n" +
	"Content-Type: text/plain; name=\"old.txt\"\r\n\r\nsecond\r\n--outer\r\n" +
	"Content-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\ny\r\n--outer--\r\n"

func TestAMailIsReadDecoded(t *testing.T) {
	t.Parallel()
	set := load(t, byMail)
	want := `{"attachments":[` +
		`{"name":"€.pdf","sha256":"` + hexDigest([]byte{0, 1, 2}) + `","size":3,"type":"application/pdf"},` +
		`{"name":"old.txt","sha256":"` + hexDigest([]byte("second")) + `","size":6,"type":"text/plain"},` +
		`{"sha256":"` + hexDigest([]byte("Subject: x\r\n\r\ny")) + `","size":15,"type":"message/rfc822"}],` +
		`"headers":{"x-mailer":"one","x-two":"é"},"html":"<b>hi</b>","reply":["r@x.test"],"text":"café softbreak\nline"}`
	if got := identityOf(derive(t, set, plainMail(t, wholeMail))); got != want {
		t.Errorf("read as\n%s, want\n%s", got, want)
	}
	for _, req := range []*Request{jsonMail(t, wholeMail, ""), bodyMail(t, wholeMail)} {
		if got := identityOf(derive(t, set, req)); got != `{"subject":"ÄÖ folded over lines","to":["b@x.test","c@x.test","d@x.test"]}` {
			t.Error(got)
		}
		check := set.Match(req).Operation.ManualCheckText(Env{Request: req})
		if want := fmt.Sprintf(`ÄÖ folded over lines from ["Jürgen <J@X.test>"] to ["\"B, C\" <b@x.test>","c@x.test"]: €.pdf, %d`, len(wholeMail)); check != want {
			t.Errorf("%s, want %s", check, want)
		}
	}
}

func TestWhichDifferencesOfMailsCount(t *testing.T) {
	t.Parallel()
	set := load(t, byMail)
	first := jsonMail(t, wholeMail, `,"thread":"t"`)
	op := set.Match(first).Operation
	changed := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(wholeMail) }
	for name, c := range map[string]struct {
		mail  string
		more  string
		want  Likeness
		place string
	}{
		"date, id and boundaries":  {changed("Mon, 02 Jan 2006", "Tue, 03 Jan 2006", "<1@x>", "<2@x>", "outer", "o2", "inner", "i2", "preamble", ""), "", Equivalent, ""},
		"how it is encoded":        {changed("=?utf-8?q?J=C3=BCrgen?=", "=?utf-8?B?SsO8cmdlbg==?=", "\r\n =?utf-8?B?w5Y=?= folded\r\n over lines", " =?utf-8?q?=C3=96?= folded over lines", "PGI+aGk8L2I+", "PGI+\r\naGk8L2I+"), "", Equivalent, ""},
		"what the rule ignores":    {changed("X-Mailer: one", "X-Mailer: two"), "", Equivalent, ""},
		"what the rule normalises": {changed("soft=\r\nbreak", "soft=\r\nbreak ", "PGI+aGk8L2I+", "PGIgPmhpPC9iPg=="), "", Equivalent, "mail.html"},
		"what is minor":            {changed("X-Mailer: one", "In-Reply-To: <0@x>"), "", Minor, "mail.in_reply_to"},
		"another text":             {changed("caf=E9", "caff=E9"), "", Significant, "mail.text line 1"},
		"another html":             {changed("PGI+aGk8L2I+", "PGI+aG88L2I+"), "", Significant, "mail.html"},
		"another attachment":       {changed("AAEC", "AAED"), "", Significant, "mail.attachments"},
		"another name of one":      {changed("%e2%82%ac", "x"), "", Significant, "mail.attachments"},
		"another field":            {changed("X-Two", "X-Three"), "", Significant, "mail.headers['x-three']"},
		"another sender":           {changed("J@X.test", "K@X.test"), "", Significant, "mail.from"},
		"what is beside the mail":  {wholeMail, "2", Significant, "json.thread"},
	} {
		other := jsonMail(t, c.mail, `,"thread":"t`+c.more+`"`)
		a, b := derive(t, set, first), derive(t, set, other)
		if identityOf(a) != identityOf(b) {
			t.Errorf("%s: another identity", name)
		}
		got := op.Compare(first, other)
		if got.Likeness != c.want || c.place != "" && (len(got.Changes) == 0 || got.Changes[0].Place != c.place) || c.place == "" && len(got.Changes) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if (a.SignificantDigest == b.SignificantDigest) != (c.want != Significant) {
			t.Errorf("%s: the digests say otherwise", name)
		}
	}
}

func TestMailsThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	set := load(t, byMail)
	nested := func(depth int) string {
		var b strings.Builder
		for i := range depth {
			fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
		}
		b.WriteString("\nx\n")
		for i := depth - 1; i >= 0; i-- {
			fmt.Fprintf(&b, "--b%d--\n", i)
		}
		return b.String()
	}
	multi := func(parts string) string {
		return simpleMail("Content-Type: multipart/mixed; boundary=bnd\n", parts)
	}
	for name, c := range map[string]struct{ mail, part string }{
		"no mail":                        {"hello", "header"},
		"nothing before the text":        {"\r\nhello", "no header"},
		"a field that comes again":       {simpleMail("Subject: Ho\n", "x"), "repeats the field subject"},
		"addresses that are none":        {simpleMail("Cc: a@b@c\n", "x"), "addresses of the field cc"},
		"a field that is no UTF-8":       {simpleMail("X-A: \xff\n", "x"), "not UTF-8"},
		"a type that is none":            {simpleMail("Content-Type: text/plain; charset=\"\n", "x"), "type of a part"},
		"a disposition that is none":     {simpleMail("Content-Disposition: ;=\n", "x"), "disposition of a part"},
		"a charset that nobody knows":    {simpleMail("Content-Type: text/plain; charset=x-none\n", "x"), "charset"},
		"a text that is no UTF-8":        {simpleMail("Content-Type: text/plain; charset=utf-8\n", "\xff"), "charset"},
		"an encoding that nobody knows":  {simpleMail("Content-Transfer-Encoding: uuencode\n", "x"), "transfer encoding"},
		"a text that isn't base64":       {simpleMail("Content-Transfer-Encoding: base64\n", "!!"), "transfer encoding"},
		"a text that isn't quoted":       {simpleMail("Content-Transfer-Encoding: quoted-printable\n", "a=\x00\x01"), "transfer encoding"},
		"no boundary":                    {simpleMail("Content-Type: multipart/mixed\n", "x"), "boundary"},
		"a boundary that never comes":    {multi("x"), "boundary"},
		"parts that never end":           {multi("--bnd\n\nx\n"), "transfer encoding"},
		"an encoding of a part":          {multi("--bnd\nContent-Transfer-Encoding: rot13\n\nx\n--bnd--\n"), "transfer encoding"},
		"a charset of a text":            {multi("--bnd\nContent-Type: text/html; charset=x-none\n\nx\n--bnd--\n"), "charset"},
		"a type that comes again":        {multi("--bnd\nContent-Type: text/plain\nContent-Type: text/html\n\nx\n--bnd--\n"), "repeats a field"},
		"more parts than can be":         {multi(strings.Repeat("--bnd\n\nx\n", 10_000) + "--bnd--\n"), "1000 parts"},
		"parts within parts":             {"Subject: Hi\r\n" + strings.ReplaceAll(nested(100), "\n", "\r\n"), "nested"},
		"a header that is too long":      {simpleMail(strings.Repeat("X-A: "+strings.Repeat("a", 100)+"\n", 3000), "x"), "too long"},
		"a field that is too long":       {simpleMail("X-A: "+strings.Repeat("a", 300<<10)+"\n", "x"), "too long"},
		"a field folded over many lines": {simpleMail("X-A: a"+strings.Repeat("\n a", 100_000)+"\n", "x"), "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			for _, req := range []*Request{jsonMail(t, c.mail, ""), bodyMail(t, c.mail)} {
				m := set.Match(req)
				wantRefusal(t, m.Refusal, ProblemAmbiguous, c.part)
			}
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	for name, body := range map[string]string{
		"no JSON": "x", "nothing there": `{"r":"x"}`, "no text there": `{"raw":1}`, "no base64url": `{"raw":"+/=="}`,
		"lines": `{"raw":"YQ\n=="}`, "bits left over": `{"raw":"YR"}`, "a name in another case": `{"raw":"","Raw":"x"}`,
	} {
		m := set.Match(request(t, "POST https://api.test/send", body, "Content-Type: application/json"))
		if m.Refusal == nil || m.Effect.passes() {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// relatedMail is an upload with JSON before the mail, as Google's libraries send it.
func relatedMail(tb testing.TB, boundary, json, mail string) *Request {
	tb.Helper()
	body := "--B\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n" + json + "\r\n--B\r\nContent-Type: message/rfc822\r\n\r\n" + mail + "\r\n--B--\r\n"
	return request(tb, "POST https://api.test/upload", strings.ReplaceAll(body, "--B", "--"+boundary), "Content-Type: multipart/related; boundary="+boundary)
}

func TestAMailIsReadBehindTheJSONOfAnUpload(t *testing.T) {
	t.Parallel()
	set := load(t, strings.Replace(byMail, "subject: mail.subject}", "subject: mail.subject, thread: mail.?beside.?thread.orValue('')}", 1))
	first := relatedMail(t, "b1", `{"thread":"t", "labels": ["a"]}`, wholeMail)
	d := derive(t, set, first)
	if got := identityOf(d); got != `{"subject":"ÄÖ folded over lines","thread":"t","to":["b@x.test","c@x.test","d@x.test"]}` {
		t.Error(got)
	}
	for name, c := range map[string]struct {
		json, mail string
		same       bool
	}{
		"only the boundary":   {`{"labels":["a"], "thread":"t"}`, wholeMail, true},
		"what is beside":      {`{"thread":"t", "labels": ["b"]}`, wholeMail, false},
		"more that is beside": {`{"thread":"t", "labels": ["a"], "x": 1}`, wholeMail, false},
		"the mail":            {`{"thread":"t", "labels": ["a"]}`, strings.Replace(wholeMail, "caf=E9", "caff=E9", 1), false},
	} {
		if other := derive(t, set, relatedMail(t, "b2", c.json, c.mail)); identityOf(other) != identityOf(d) || (other.PayloadDigest == d.PayloadDigest) != c.same {
			t.Errorf("%s: %s, same payload %t", name, identityOf(other), other.PayloadDigest == d.PayloadDigest)
		}
	}
	if got := identityOf(derive(t, set, bodyMail(t, wholeMail))); !strings.Contains(got, `"thread":""`) {
		t.Error(got)
	}
	for name, body := range map[string]string{
		"nothing":             "--B\r\nContent-Type: application/json\r\n\r\n{}\r\n--B\r\n\r\n" + wholeMail + "\r\n--B--",
		"no JSON first":       "--B\r\nContent-Type: text/plain\r\n\r\n{}\r\n--B\r\n\r\n" + wholeMail + "\r\n--B--",
		"JSON of two kinds":   "--B\r\nContent-Type: application/json\r\n\r\n{\"a\":1,\"a\":2}\r\n--B\r\n\r\n" + wholeMail + "\r\n--B--",
		"no mail":             "--B\r\nContent-Type: application/json\r\n\r\n{}\r\n--B--",
		"more than two parts": "--B\r\nContent-Type: application/json\r\n\r\n{}\r\n--B\r\n\r\n" + wholeMail + "\r\n--B\r\n\r\nx\r\n--B--",
		"an open end":         "--B\r\nContent-Type: application/json\r\n\r\n{}\r\n--B\r\n\r\n" + wholeMail,
	} {
		body = strings.ReplaceAll(body, "--B", "--a-related")
		m := set.Match(request(t, "POST https://api.test/upload", body, "Content-Type: multipart/related; boundary=a-related"))
		if fine := name == "nothing"; fine != (m.Refusal == nil) || !fine && m.Refusal.Problem != ProblemAmbiguous {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// A part's own fields, and what it holds, may be as long as the body.
func TestHostileMailsTakeBoundedTime(t *testing.T) {
	t.Parallel()
	part := func(fields string) string {
		return simpleMail("Content-Type: multipart/mixed; boundary=bnd\n", "--bnd\n"+fields+"\n\nx\n--bnd--\n")
	}
	for name, mail := range map[string]string{
		"folded fields":    part("X-A: a" + strings.Repeat("\n a", 1<<20)),
		"many fields":      part(strings.Repeat("X-A: a\n", 1<<17)),
		"near boundaries":  part("X: y\n\n" + strings.Repeat("--bn\n", 1<<20)),
		"a long line":      part("X: y\n\n" + strings.Repeat("-", 4<<20)),
		"encoded words":    simpleMail("X-A: "+strings.Repeat("=?utf-8?q?=41?= ", 15<<10)+"\n", "x"),
		"broken words":     simpleMail("X-A: "+strings.Repeat("=?", 100<<10)+"\n", "x"),
		"many addresses":   simpleMail("Cc: "+strings.Repeat("a@x.test, ", 20<<10)+"a@x.test\n", "x"),
		"nested comments":  simpleMail("Cc: "+strings.Repeat("(", 100<<10)+"\n", "x"),
		"many parameters":  simpleMail("Content-Type: text/plain"+strings.Repeat("; a*0=b", 20<<10)+"\n", "x"),
		"quoted printable": simpleMail("Content-Transfer-Encoding: quoted-printable\n", strings.Repeat("=\n", 1<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			_ = (&content{bytes: []byte(mail)}).parseMail(&mailFrom{at: place{root: "body"}})
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestMailsInTheFile(t *testing.T) {
	t.Parallel()
	for file, part := range map[string]string{
		withOperation("identity: {s: mail.subject}"):                                                              "no match says where the mail is",
		withOperation("match: {method: POST, path: /a, mail: {from: body}}", "identity: {s: sha256(mail.bytes)}"): "each run would be another mutation",
		withOperation("match: [{method: POST, path: /a, mail: {from: body}}, {method: POST, path: /b}]"):          "only some of the matches",
		withOperation("match: {method: POST, path: /a, mail: {from: query.x}}"):                                   "can't be used here",
		withOperation("match: {method: POST, path: /a, mail: {encoding: base64}}"):                                "from is missing",
		withOperation("match: {method: POST, path: /a, mail: {from: body}}", "payload: {ignore: [mail.date]}"):    "names no single place",
	} {
		_, findings := Load([]File{{Data: []byte(file)}}, nil, Defaults{})
		if !strings.Contains(findings.Error(), part) {
			t.Errorf("%s\n%v", file, findings)
		}
	}
}

// FuzzMail holds that a mail is refused with a sentence or read, the same each time, and that nothing of it is outside of
// what is compared.
func FuzzMail(f *testing.F) {
	f.Add(wholeMail)
	f.Add(simpleMail("", "x"))
	f.Add(simpleMail("Content-Type: text/html; charset=iso-2022-jp\nContent-Transfer-Encoding: base64\n", "GyRCJCIbKEI="))
	f.Fuzz(func(t *testing.T, mail string) {
		read := func() view { return (&content{bytes: []byte(mail)}).parseMail(&mailFrom{at: place{root: "body"}}) }
		v, again := read(), read()
		if (v.problem == nil) == (v.tree == nil) || (v.tree == nil) != (v.pairs == nil) {
			t.Fatalf("%v with %v", v.problem, v.tree)
		}
		if v.tree == nil {
			return
		}
		text := string(appendCanonical(nil, v.tree, nil))
		if text != string(appendCanonical(nil, again.tree, nil)) {
			t.Fatal("read in two ways")
		}
		if _, err := parseJSON([]byte(text)); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, name := range []string{"date", "message-id"} {
			if headers, _ := v.tree.member("headers"); headers != nil {
				if _, there := headers.member(name); there {
					t.Fatalf("%s is shown", name)
				}
			}
		}
	})
}

// A form has the mail in one field. What stands beside it is payload.
func TestAMailInAForm(t *testing.T) {
	t.Parallel()
	set := load(t, connectorHead+`
  - name: send
    match: {method: POST, path: /form, mail: {from: "form['Raw.Data']", encoding: base64}}
    effect: mutation
    identity: {to: addresses(mail.to)}
    reconcile: [{none: why}]
    manual_check: look
`)
	send := func(more, fields string) *Request {
		mail := url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(simpleMail(more, "Hi"))))
		return request(t, "POST https://api.test/form", "Raw.Data="+mail+fields, "Content-Type: application/x-www-form-urlencoded")
	}
	first := derive(t, set, send("Date: Fri, 02 Jan 2026 03:04:05 +0000\n", "&Tag=a"))
	if again := derive(t, set, send("Date: Sat, 03 Jan 2026 03:04:05 +0000\n", "&Tag=a")); again.PayloadDigest != first.PayloadDigest {
		t.Error("the mail's date is payload")
	}
	if other := derive(t, set, send("", "&Tag=b")); other.PayloadDigest == first.PayloadDigest || identityOf(other) != identityOf(first) {
		t.Errorf("beside it: %s, %s", identityOf(other), identityOf(first))
	}
	if m := set.Match(send("", "&Raw.Data=x")); m.Refusal == nil {
		t.Error("two mails are taken for one")
	}
}
