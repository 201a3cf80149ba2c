package rules

import (
	"net/http"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
)

// byAction takes actions of AWS.
const byAction = `apiVersion: keep/v1
connector: queues
version: 1
hosts: ["queues.{region}.test"]
reads: []
aws: {service: sqs}
operations:
  - name: look
    match: {method: POST, aws: {action: [GetUrl, List]}}
    effect: read
  - name: send
    match: {method: POST, aws: {action: Send}}
    effect: mutation
    identity: {queue: aws.params.Queue, to: "aws.params.?To.orValue([]).join(' ')"}
    payload: {ignore: [json.At, form.At]}
    native_key: {aws: Dedup, when_present: keep_first, window: 5m}
    success: has(response.xml.SendResult) && !has(response.xml.SendResult.Failed) || has(response.json.Id)
    reconcile: [{resend: {}}, {none: why}]
    manual_check: "{aws.params.Queue}"
`

const (
	awsJSON = "Content-Type: application/x-amz-json-1.0"
	awsForm = "Content-Type: application/x-www-form-urlencoded"
	target  = "X-Amz-Target: Queues_2012.Send"
	signed  = "Authorization: AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-1/sqs/aws4_request, SignedHeaders=host, Signature=00"
)

func TestAnActionIsReadFromBothProtocols(t *testing.T) {
	t.Parallel()
	set := load(t, byAction)
	byJSON := derive(t, set, request(t, "POST https://queues.eu-1.test/", `{"Queue":"q","To":["a","b"],"Dedup":"1","At":"now"}`, awsJSON, target))
	byForm := derive(t, set, request(t, "POST https://queues.eu-1.test/", "Action=Send&Version=2012&To.member.2=b&To.member.1=a&Queue=q&Dedup=2&At=then", awsForm))
	if identityOf(byJSON) != identityOf(byForm) || !strings.Contains(identityOf(byForm), `"a b"`) {
		t.Errorf("by JSON %s, by form %s", identityOf(byJSON), identityOf(byForm))
	}
	again := derive(t, set, request(t, "POST https://queues.eu-1.test/", `{"At":"later","Dedup":"3","To":["a","b"],"Queue":"q"}`, awsJSON, target))
	if again.PayloadDigest != byJSON.PayloadDigest {
		t.Error("the key, a time or the order of members is payload")
	}
	op := set.Connectors()[0].Operation("send")
	for body, header := range map[string]string{`{"Dedup":"k"}`: target, "Action=Send&Dedup=k": awsForm} {
		if key, sent := op.ClientKey(request(t, "POST https://queues.eu-1.test/", body, header)); key != "k" || !sent {
			t.Errorf("%s: the script's key is %q, %v", body, key, sent)
		}
	}
	if service, region := set.Signing("queues", "https", "queues.eu-1.test"); service != "sqs" || region != "eu-1" {
		t.Errorf("signed for %q in %q", service, region)
	}
}

func TestActionsThatAreRefused(t *testing.T) {
	t.Parallel()
	set := load(t, byAction)
	many := "Action=Send" + strings.Repeat("&a=b", maxAWSFields)
	for name, c := range map[string]struct {
		line, body string
		header     []string
		problem    Problem
	}{
		"unknown":                    {"POST https://queues.eu-1.test/", `{}`, []string{awsJSON, "X-Amz-Target: Q.Purge"}, ProblemUnmatched},
		"no action":                  {"POST https://queues.eu-1.test/", "Queue=q", []string{awsForm}, ProblemUnmatched},
		"a GET":                      {"GET https://queues.eu-1.test/?Action=List", "", nil, ProblemUnmatched},
		"one in the URL":             {"POST https://queues.eu-1.test/?Action=Send", "Action=List", []string{awsForm}, ProblemAmbiguous},
		"two targets":                {"POST https://queues.eu-1.test/", `{}`, []string{awsJSON, target, "X-Amz-Target: Q.List"}, ProblemAmbiguous},
		"a target without an action": {"POST https://queues.eu-1.test/", `{}`, []string{awsJSON, "X-Amz-Target: Send"}, ProblemAmbiguous},
		"a target and a form":        {"POST https://queues.eu-1.test/", "Action=List", []string{awsForm, "X-Amz-Target: Q.List"}, ProblemAmbiguous},
		"a list as JSON":             {"POST https://queues.eu-1.test/", `[]`, []string{awsJSON, target}, ProblemAmbiguous},
		"a name twice in JSON":       {"POST https://queues.eu-1.test/", `{"Queue":"q","Queue":"r"}`, []string{awsJSON, target}, ProblemAmbiguous},
		"another case of Action":     {"POST https://queues.eu-1.test/", "action=Send&Action=List", []string{awsForm}, ProblemAmbiguous},
		"two actions":                {"POST https://queues.eu-1.test/", "Action=List&Action=Send", []string{awsForm}, ProblemAmbiguous},
		"a name twice in a form":     {"POST https://queues.eu-1.test/", "Action=Send&Queue=q&Queue=r", []string{awsForm}, ProblemAmbiguous},
		"a value with members":       {"POST https://queues.eu-1.test/", "Action=Send&Queue=q&Queue.1=r", []string{awsForm}, ProblemAmbiguous},
		"too many names":             {"POST https://queues.eu-1.test/", many, []string{awsForm}, ProblemAmbiguous},
		"a deep name":                {"POST https://queues.eu-1.test/", "Action=Send&a" + strings.Repeat(".1", 20) + "=b", []string{awsForm}, ProblemAmbiguous},
	} {
		if m := set.Match(request(t, c.line, c.body, c.header...)); m.Refusal == nil || m.Refusal.Problem != c.problem {
			t.Errorf("%s: %+v, %v", name, m.Operation, m.Refusal)
		}
	}
}

// A signed request is sent as it was signed, or not at all.
func TestNothingIsWrittenUnderASignature(t *testing.T) {
	t.Parallel()
	set := load(t, byAction)
	op := set.Connectors()[0].Operation("send")
	with := request(t, "POST https://queues.eu-1.test/", `{"Dedup" : "k","Queue":"q"}`, awsJSON, target, signed)
	out, refusal := op.Outgoing(with, Mutation{VendorKey: "k"})
	if refusal != nil || string(out.Body()) != string(with.Body()) {
		t.Fatalf("with the script's key: %v", refusal)
	}
	without := request(t, "POST https://queues.eu-1.test/", `{"Queue":"q"}`, awsJSON, target, signed, "X-Amz-Content-Sha256: 00")
	_, refusal = op.Outgoing(without, Mutation{VendorKey: "k"})
	wantRefusal(t, refusal, ProblemIdentity, "signed")
	presigned := request(t, "POST https://queues.eu-1.test/?X-Amz-Signature=00", `{"Queue":"q"}`, awsJSON, target)
	_, refusal = op.Outgoing(presigned, Mutation{VendorKey: "k"})
	wantRefusal(t, refusal, ProblemIdentity, "signed")
	anew := load(t, byAction, Settings{Connector: "queues", Signs: true}).Connectors()[0].Operation("send")
	if out, refusal = anew.Outgoing(without, Mutation{VendorKey: "k"}); refusal != nil || string(out.Body()) != `{"Queue":"q","Dedup":"k"}` {
		t.Errorf("signed anew: %v", refusal)
	}
}

func TestAMarkerInAHeaderField(t *testing.T) {
	t.Parallel()
	const rule = `
  - name: put
    match: {method: PUT, path: "/{key...}"}
    effect: mutation
    identity: {key: path.key}
    marker: {header: X-Amz-Meta-Keep}
    reconcile: [{probe: {head: "/{path.key...}", observe: [{when: "header_of(response, 'x-amz-meta-keep') == mutation.marker", is: applied}]}}]
    manual_check: look
`
	file := strings.Replace(connectorHead, "operations:", "aws: {service: s3}\noperations:", 1) + rule
	req := request(t, "PUT https://api.test/a", "x", "X-Amz-Meta-Keep: mine")
	op := load(t, file, Settings{Connector: "test", Signs: true}).Connectors()[0].Operation("put")
	out, refusal := op.Outgoing(req, Mutation{Marker: CaseMarker})
	if refusal != nil || out.Header.Get("X-Amz-Meta-Keep") != CaseMarker {
		t.Fatalf("%v, %v", out, refusal)
	}
	asking, err := op.Strategies[0].Probe.Begin(Env{Request: req, Mutation: Mutation{Marker: CaseMarker}})
	if err != nil {
		t.Fatal(err)
	}
	if ask, _ := asking.Next(); ask.Method != http.MethodHead || ask.Target != "/a" || ask.Body != nil {
		t.Errorf("it asks %+v", ask)
	}
	unsigned := load(t, file).Connectors()[0].Operation("put")
	if out, refusal := unsigned.Outgoing(req, Mutation{Marker: CaseMarker, Unmarked: true}); refusal != nil || out.Header.Get("X-Amz-Meta-Keep") != "mine" || !unsigned.Unmarked(req) {
		t.Errorf("without a key that signs: %v, %v", out, refusal)
	}
}

func TestAnswersInXML(t *testing.T) {
	t.Parallel()
	set := load(t, byAction)
	op := set.Connectors()[0].Operation("send")
	req := request(t, "POST https://queues.eu-1.test/", "Action=Send&Queue=q&Dedup=k", awsForm)
	for body, want := range map[string]verdict.OpinionKind{
		`<?xml version="1.0"?>` + "\n  " + `<q:SendResult xmlns:q="urn:q"><Id a="b">1</Id></q:SendResult>`: verdict.OpinionNone,
		`{"Id":"1"}`:                                           verdict.OpinionNone,
		`<SendResult><Failed/></SendResult>`:                   verdict.OpinionUncertain,
		`<Error><Code>InternalError</Code></Error>`:            verdict.OpinionUncertain,
		`<SendResult><Id>1</Id>`:                               verdict.OpinionUncertain,
		`<SendResult/><SendResult/>`:                           verdict.OpinionUncertain,
		`<!DOCTYPE x><SendResult/>`:                            verdict.OpinionUncertain,
		`<SendResult>&x;</SendResult>`:                         verdict.OpinionUncertain,
		`<?xml version="1.0" encoding="latin1"?><SendResult/>`: verdict.OpinionUncertain,
		strings.Repeat("<SendResult>", 200) + strings.Repeat("</SendResult>", 200): verdict.OpinionUncertain,
		"": verdict.OpinionUncertain,
	} {
		if got := op.Judge(req, "", Mutation{}, &Response{Status: 200, Body: []byte(body), Complete: true}); got.Kind != want {
			t.Errorf("%.80s: %v (%s)", body, got.Kind, got.Reason)
		}
	}
	v, problem := newAnswer(&Response{Status: 200, Complete: true, Body: []byte("<r>\n <a>1</a> <b> x </b><a><c>2</c></a><a/></r>")}).xml()
	if problem != nil || string(appendCanonical(nil, v, nil)) != `{"r":{"a":["1",{"c":"2"},""],"b":" x "}}` {
		t.Errorf("%s, %v", appendCanonical(nil, v, nil), problem)
	}
	if _, problem := askedAnswer(&Response{Status: 200, Complete: true, Body: []byte("Please log in")}).xml(); problem == nil {
		t.Error("a probe was told nothing, and believes it")
	}
}

func FuzzAWS(f *testing.F) {
	set := load(f, byAction)
	for _, body := range []string{`{"Queue":"q"}`, "Action=Send&Queue=q&To.1=a&To.1.b=c", "Action=Send&a.member.1=&a.member.3=b"} {
		f.Add(body, "Q.Send", "<a><b>1</b><b/></a>")
		f.Add(body, "", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>")
	}
	f.Fuzz(func(t *testing.T, body, by, answer string) {
		var header []string
		if by == "" {
			header = []string{awsForm}
		} else {
			header = []string{"X-Amz-Target: " + by}
		}
		req, refusal := rawRequest("POST https://queues.eu-1.test/", body, header...)
		if refusal != nil {
			return
		}
		if m := set.Match(req); m.Refusal == nil && m.Operation == nil {
			t.Fatal("neither taken nor refused")
		}
		if v, problem := newAnswer(&Response{Status: 200, Complete: true, Body: []byte(answer)}).xml(); v != nil && (problem != nil || len(v.items) != 1) {
			t.Fatalf("%v, %v", v, problem)
		}
	})
}

// A region has a hyphen, so the hosts of services don't meet.
func TestHostsOfServicesDontOverlap(t *testing.T) {
	t.Parallel()
	file := func(name, host string, aws bool) File {
		head := strings.NewReplacer("connector: test", "connector: "+name, "[api.test]", "['"+host+"']").Replace(connectorHead)
		if aws {
			head = strings.Replace(head, "operations:", "aws: {service: s}\noperations:", 1)
		}
		return File{Name: name + ".yaml", Data: []byte(head + simpleMutation)}
	}
	buckets := file("buckets", "{bucket}.s3.aws.test", true)
	set, findings := Load([]File{file("tokens", "sts.{region}.aws.test", true), buckets}, nil, Defaults{})
	if set == nil {
		t.Fatal(findings)
	}
	for host, want := range map[string]string{"sts.eu-1.aws.test": "tokens", "sts.s3.aws.test": "buckets", "b.s3.aws.test": "buckets"} {
		if m := set.Match(request(t, "POST https://"+host+"/things/a", `{"name":"a"}`)); m.Connector == nil || m.Connector.Name != want {
			t.Errorf("%s: %+v", host, m)
		}
	}
	if set, _ := Load([]File{file("tokens", "sts.{region}.aws.test", false), buckets}, nil, Defaults{}); set != nil {
		t.Error("any label is a region")
	}
}
