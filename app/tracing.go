package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"keep-proxy/proxy"
)

// traceFlush bounds how long the end of the program waits for a collector.
const traceFlush = 5 * time.Second

// tracing sends a span of each request to an OpenTelemetry collector. A span is made when its request has ended, from
// what the log line says. So nothing delays a request. What the collector doesn't take is dropped. It implements
// proxy.Observer.
type tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// traced says by the standard variables whether spans are wanted, or why they can't be had.
// OpenTelemetry's own default would send them to a collector on this machine; here one
// must be named.
func traced(getenv func(string) string) (bool, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	wanted := getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "":
	case "otlp":
		wanted = true
	case "none":
		return false, nil
	default:
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER=%s isn't known: give otlp, or none", exporter)
	}
	if !wanted {
		return false, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch protocol := getenv(name); protocol {
		case "":
			continue
		case "http/protobuf":
			return true, nil
		default:
			return false, fmt.Errorf("%s=%s isn't spoken: give http/protobuf and the collector's address for it (port 4318)", name, protocol)
		}
	}
	return true, nil
}

// newTracing is nil where no spans are wanted.
func newTracing(ctx context.Context, getenv func(string) string, version string, log zerolog.Logger) (*tracing, error) {
	wanted, err := traced(getenv)
	if !wanted || err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "keep-proxy"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn().Err(err).Msg("OpenTelemetry") }))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return &tracing{provider, provider.Tracer("keep-proxy")}, nil
}

// Active implements proxy.Observer.
func (t *tracing) Active() bool { return true }

// Tell implements proxy.Observer.
func (t *tracing) Tell(l proxy.Line) {
	if l.Client != "" {
		return // It was no request.
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{
		"traceparent": l.Traceparent, "tracestate": l.Tracestate,
	})
	ctx, span := t.tracer.Start(ctx, spanName(&l), trace.WithTimestamp(l.At.Add(-l.Duration)),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(spanAttributes(&l)...))
	if s := l.Sent; s != nil {
		_, sent := t.tracer.Start(ctx, "send "+method(l.Method), trace.WithTimestamp(s.Started), trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(attribute.String("keep.verdict", s.Verdict), attribute.Int("http.response.status_code", s.Status)))
		if s.Error != "" {
			sent.SetStatus(codes.Error, s.Error)
		}
		sent.End(trace.WithTimestamp(s.Ended))
	}
	if l.Problem != "" || l.Status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, l.Problem)
	}
	span.End(trace.WithTimestamp(l.At))
}

// close hands over what is left, for a bounded time.
func (t *tracing) close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), traceFlush)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// method is a request's method, if it is a usual one: names of spans are few.
func method(m string) string {
	usual := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	if slices.Contains(usual, m) {
		return m
	}
	return "HTTP"
}

func spanName(l *proxy.Line) string {
	if l.Operation == "" {
		return method(l.Method)
	}
	return method(l.Method) + " " + l.Connector + "." + l.Operation
}

// spanAttributes are the log's fields, in OpenTelemetry's words where it has some.
func spanAttributes(l *proxy.Line) []attribute.KeyValue {
	host, port, err := net.SplitHostPort(l.Host)
	if err != nil {
		host, port = l.Host, ""
	}
	out := []attribute.KeyValue{attribute.Int("http.response.status_code", l.Status), attribute.Bool("keep.delivered", l.Delivered)}
	for _, a := range []struct{ key, value string }{
		{"http.request.method", l.Method}, {"server.address", host}, {"server.port", port}, {"url.path", l.Path},
		{"keep.effect", l.Effect}, {"keep.problem", l.Problem}, {"keep.workflow", l.Workflow}, {"keep.item", l.Item}, {"keep.run", l.Run},
		{"keep.connector", l.Connector}, {"keep.operation", l.Operation},
		{"keep.mutation", l.Mutation}, {"keep.state", l.State}, {"keep.decision", l.Decision},
		{"keep.upgrade", l.Upgrade}, {"keep.ended", l.Ended},
	} {
		if a.value != "" {
			out = append(out, attribute.String(a.key, a.value))
		}
	}
	return out
}

// openTracing begins to trace, if that is wanted. What keeps it from it is told, and no
// reason not to serve.
func (a *App) openTracing(ctx context.Context) error {
	if !a.options.Trace {
		return nil
	}
	made, err := newTracing(ctx, os.Getenv, a.options.Version, a.options.Log)
	if err != nil {
		a.note("no traces are sent: " + err.Error())
	}
	a.tracing = made
	return nil
}

// observers are those who follow requests.
func (a *App) observers() proxy.Observer {
	if a.tracing == nil {
		return a.tail
	}
	return observers{a.tail, a.tracing}
}

// observers are several in one.
type observers []proxy.Observer

// Active implements proxy.Observer.
func (o observers) Active() bool { return slices.ContainsFunc(o, proxy.Observer.Active) }

// Tell implements proxy.Observer.
func (o observers) Tell(l proxy.Line) {
	for _, one := range o {
		if one.Active() {
			one.Tell(l)
		}
	}
}
