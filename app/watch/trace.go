package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ashlar/gateway"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	tracing "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// flushTime bounds how long Close waits for the last traces to be sent.
const flushTime = 5 * time.Second

// Tracer sends a trace of each sampled request to an OTLP collector. It must be closed.
type Tracer struct {
	provider *tracing.TracerProvider
	tracer   trace.Tracer
}

// NewTracer returns a tracer for a collector's URL, such as http://127.0.0.1:4318. share is
// the share of requests that are traced, of those whose client has not decided that. Headers,
// such as a token, come from OTEL_EXPORTER_OTLP_HEADERS.
func NewTracer(ctx context.Context, endpoint string, share float64, version string) (*Tracer, error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { slog.Warn("sending traces failed", "error", err) }))
	provider := tracing.NewTracerProvider(
		tracing.WithBatcher(exporter), // drops traces while the collector does not keep up
		tracing.WithSampler(tracing.ParentBased(tracing.TraceIDRatioBased(share))),
		tracing.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "ashlar"), attribute.String("service.version", version),
		)),
	)
	return &Tracer{provider, provider.Tracer("ashlar")}, nil
}

// Watch is a gateway.Watcher.
func (t *Tracer) Watch(_ context.Context, w *gateway.Watched) {
	parent := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": w.TraceParent})
	ctx, span := t.tracer.Start(parent, "request", trace.WithTimestamp(w.Began), trace.WithSpanKind(trace.SpanKindServer))
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("ashlar.network", w.Network), attribute.String("ashlar.key", w.Key.String()),
			attribute.Int("ashlar.calls", w.Total), attribute.Int("ashlar.asked_bytes", w.Asked), attribute.Int("ashlar.answered_bytes", w.Answered),
		)
		for _, c := range w.Calls {
			t.call(ctx, c)
		}
		if code := firstCode(w); code != 0 {
			span.SetStatus(codes.Error, codeText(code))
		}
	}
	span.End(trace.WithTimestamp(w.Began.Add(w.Took)))
}

// call adds the span of one call.
func (t *Tracer) call(ctx context.Context, c gateway.WatchedCall) {
	_, span := t.tracer.Start(ctx, name(c.Method), trace.WithTimestamp(c.Ended.Add(-c.Took)),
		trace.WithAttributes(attribute.String("rpc.system", "jsonrpc"), attribute.String("rpc.method", name(c.Method))))
	if c.Code != 0 {
		span.SetAttributes(attribute.Int("rpc.jsonrpc.error_code", c.Code))
		span.SetStatus(codes.Error, codeText(c.Code))
	}
	span.End(trace.WithTimestamp(c.Ended))
}

// Close sends what has not been sent yet.
func (t *Tracer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("traces: %w", err)
	}
	return nil
}
