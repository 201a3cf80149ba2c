package app

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rs/zerolog"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"keep-proxy/internal/fakes/testca"
	"keep-proxy/proxy"
)

func TestWhetherRequestsAreTraced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		env    map[string]string
		wanted bool
		err    string
	}{
		{"nothing is said", nil, false, ""},
		{"a collector", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, true, ""},
		{"a collector of traces", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, true, ""},
		{"the exporter alone", map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, ""},
		{"disabled", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, false, ""},
		{"no exporter", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, false, ""},
		{"another exporter", map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, false, "OTEL_TRACES_EXPORTER=zipkin isn't known: give otlp, or none"},
		{"gRPC", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false,
			"OTEL_EXPORTER_OTLP_PROTOCOL=grpc isn't spoken: give http/protobuf and the collector's address for it (port 4318)"},
		{"gRPC for metrics", map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
		}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wanted, err := traced(func(name string) string { return c.env[name] })
			said := ""
			if err != nil {
				said = err.Error()
			}
			if wanted != c.wanted || said != c.err {
				t.Errorf("%t %q, want %t %q", wanted, said, c.wanted, c.err)
			}
		})
	}
}

// TestSpansReachTheCollector sets the process's environment, which the exporter reads.
func TestSpansReachTheCollector(t *testing.T) {
	got := make(chan *collector.ExportTraceServiceRequest, 8)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		q := &collector.ExportTraceServiceRequest{}
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(text, q) != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		got <- q
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_SERVICE_NAME", "payments-sidecar")
	env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL}
	tracer, err := newTracing(context.Background(), func(name string) string { return env[name] }, "1.2.3", zerolog.Nop())
	if err != nil || tracer == nil {
		t.Fatalf("no tracing: %v", err)
	}
	end := time.Date(2026, 3, 1, 12, 0, 1, 0, time.UTC)
	tracer.Tell(proxy.Line{
		At: end, Duration: time.Second, Method: "POST", Host: "bank.test:443", Path: "/transfers", Status: 201, Effect: "mutation",
		Workflow: "payouts", Item: "invoice-17", Connector: "bank", Operation: "transfer", Mutation: "m-1",
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Sent:        &proxy.Sent{Started: end.Add(-time.Second / 2), Ended: end, Status: 201, Verdict: "applied"},
	})
	tracer.Tell(proxy.Line{At: end, Method: "BREW", Host: "pot.test", Status: 403, Problem: "unmatched"})
	tracer.Tell(proxy.Line{At: end, Status: 400, Problem: "malformed-request", Client: "127.0.0.1:1", Detail: "no request"})
	if err := tracer.close(); err != nil {
		t.Fatal(err)
	}
	q := <-got
	about := map[string]string{}
	for _, a := range q.GetResourceSpans()[0].GetResource().GetAttributes() {
		about[a.GetKey()] = a.GetValue().GetStringValue()
	}
	if about["service.name"] != "payments-sidecar" || about["service.version"] != "1.2.3" {
		t.Errorf("the resource is %v", about)
	}
	named := map[string]*spans.Span{}
	for _, s := range q.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans() {
		named[s.GetName()] = s
	}
	asked, sent, refused := named["POST bank.transfer"], named["send POST"], named["HTTP"]
	if len(named) != 3 || asked == nil || sent == nil || refused == nil {
		t.Fatalf("spans %v", named)
	}
	if hex.EncodeToString(asked.GetTraceId()) != "0af7651916cd43dd8448eb211c80319c" || hex.EncodeToString(asked.GetParentSpanId()) != "b7ad6b7169203331" {
		t.Errorf("the request's span is no child of the script's: %v", asked)
	}
	if asked.GetStartTimeUnixNano() != uint64(end.Add(-time.Second).UnixNano()) || asked.GetEndTimeUnixNano() != uint64(end.UnixNano()) {
		t.Errorf("its times are %d to %d", asked.GetStartTimeUnixNano(), asked.GetEndTimeUnixNano())
	}
	if string(sent.GetParentSpanId()) != string(asked.GetSpanId()) || sent.GetKind() != spans.Span_SPAN_KIND_CLIENT {
		t.Errorf("the sending's span: %v", sent)
	}
	if refused.GetStatus().GetCode() != spans.Status_STATUS_CODE_ERROR || refused.GetStatus().GetMessage() != "unmatched" || len(refused.GetParentSpanId()) != 0 {
		t.Errorf("the refusal's span: %v", refused)
	}
}

// TestTheProgramSendsItsSpans sets the process's environment, as an operator does.
func TestTheProgramSendsItsSpans(t *testing.T) {
	got := make(chan *collector.ExportTraceServiceRequest, 8)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		q := &collector.ExportTraceServiceRequest{}
		if err != nil || proto.Unmarshal(text, q) != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		got <- q
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	_, port := newSite(t, ca, "127.0.0.2:0", "")
	for _, wanted := range []bool{false, true} {
		w := newDialled(t, port, ca, nameserver(t, func(string, int) []string { return []string{"127.0.0.2"} }), func(s *setup) { s.options.Trace = wanted })
		if status, text := w.post(mapped); status != http.StatusCreated {
			t.Fatalf("%d %s", status, text)
		}
		if err := w.app.Stop(t.Context()); err != nil { // The last spans go out with the end.
			t.Fatal(err)
		}
		if !wanted {
			if len(got) != 0 {
				t.Error("spans were sent though nobody asked")
			}
			continue
		}
		if len(got) == 0 {
			t.Fatal("no spans were sent")
		}
		names := map[string]bool{}
		for _, s := range (<-got).GetResourceSpans()[0].GetScopeSpans()[0].GetSpans() {
			names[s.GetName()] = true
		}
		if len(names) != 2 || !names["POST things.make"] || !names["send POST"] {
			t.Errorf("spans %v", names)
		}
	}
}

func TestWithoutTracingNobodyFollows(t *testing.T) {
	t.Parallel()
	a := &App{tail: newTail()}
	if o := a.observers(); o.Active() {
		t.Error("requests are followed though nobody asked")
	}
	var none *tracing
	if err := none.close(); err != nil {
		t.Errorf("closing nothing: %v", err)
	}
}
