package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/run/policy"
)

// Metrics are what a worker process tells Prometheus: the SDK's own metrics, and Steward's. No label names a run, a
// conversation or an effect.
type Metrics struct {
	registry  *prometheus.Registry
	sdk       *sdkMetrics
	sends     *prometheus.CounterVec
	turns     *prometheus.CounterVec
	looks     *prometheus.CounterVec
	successor *prometheus.HistogramVec

	mu sync.Mutex
	// settled is when the turn of an effect settled, until its successor was sent.
	settled map[string]time.Time
}

// NewMetrics makes the metrics of one process.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	m := &Metrics{
		registry: registry, sdk: newSDKMetrics(registry), settled: map[string]time.Time{},
		sends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "steward_sends_total", Help: "Send attempts by what they proved.",
		}, []string{"browser", "kind", "outcome"}),
		turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "steward_turns_total", Help: "Observations that ended, by what the page showed of the turn and whether it had a valid receipt.",
		}, []string{"browser", "turn", "receipt"}),
		looks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "steward_reconciliations_total", Help: "Looks for an effect of unknown outcome, by what they saw.",
		}, []string{"browser", "seen"}),
		successor: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "steward_successor_seconds", Help: "Time from a settled turn to the commit of its successor, both in this process.",
			Buckets: []float64{.1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600},
		}, []string{"browser"}),
	}
	registry.MustRegister(m.sends, m.turns, m.looks, m.successor,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler takes the SDK's metrics of a client and of its workers.
func (m *Metrics) Handler() client.MetricsHandler { return m.sdk }

// Serve answers scrapes at http://address/metrics until ctx ends. It returns the address, which names the port where the given
// one was 0.
func (m *Metrics) Serve(ctx context.Context, address string, log *slog.Logger) (string, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", fmt.Errorf("metrics: %w; every worker of a host needs a port of its own (worker.metrics)", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, Timeout: 15 * time.Second}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics are not served any more", "error", err)
		}
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	log.Info("metrics", "address", "http://"+listener.Addr().String()+"/metrics")
	return listener.Addr().String(), nil
}

// metered counts what the activities of one login bring back.
type metered struct {
	BrowserActivities
	name string
	m    *Metrics
}

// Send counts an attempt and, when it committed, the time since the turn that it follows.
func (b metered) Send(ctx context.Context, in activities.SendInput) (activities.SendResult, error) {
	out, err := b.BrowserActivities.Send(ctx, in)
	outcome := string(out.Outcome)
	if err != nil {
		outcome = "failed"
	}
	b.m.sends.WithLabelValues(b.name, in.Kind, outcome).Inc()
	if out.Outcome == activities.SendCommitted && in.Fence != nil {
		if at := b.m.followed(in.Fence.SourceEffect); !at.IsZero() && !out.AlreadyThere {
			b.m.successor.WithLabelValues(b.name).Observe(max(0, out.CommittedAt.Sub(at).Seconds()))
		}
	}
	return out, err
}

// Observe counts a turn.
func (b metered) Observe(ctx context.Context, in activities.ObserveInput) (activities.ObserveResult, error) {
	out, err := b.BrowserActivities.Observe(ctx, in)
	if err != nil {
		return out, err
	}
	valid := "none"
	if out.Reading.Receipt != nil {
		valid = "valid"
		b.m.settle(in.EffectID, out.SettledAt)
	}
	b.m.turns.WithLabelValues(b.name, string(out.Turn), valid).Inc()
	return out, err
}

// Reconcile counts a look.
func (b metered) Reconcile(ctx context.Context, in activities.ReconcileInput) (activities.ReconcileResult, error) {
	out, err := b.BrowserActivities.Reconcile(ctx, in)
	seen := "nothing"
	switch {
	case err != nil || !out.Readable:
		seen = "unreadable"
	case out.Marker:
		seen = "marker"
	}
	b.m.looks.WithLabelValues(b.name, seen).Inc()
	return out, err
}

// maxSettled bounds the turns that wait for a successor: one that ends a run gets none.
const maxSettled = 10_000

func (m *Metrics) settle(effect string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.settled) >= maxSettled {
		clear(m.settled)
	}
	m.settled[effect] = at
}

// followed is when the turn of an effect settled, told once; zero when this process has not seen it.
func (m *Metrics) followed(effect string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.settled[effect]
	delete(m.settled, effect)
	return at
}

// openRuns counts the open runs by status and by blocker at a scrape, in one pass over the list.
type openRuns struct {
	client            client.Client
	namespace         string
	log               *slog.Logger
	status, unknown   *prometheus.Desc
	blockers, answers *prometheus.Desc
}

// Watch adds the open runs of a namespace. One worker that decides is enough to ask.
func (m *Metrics) Watch(c client.Client, namespace string, log *slog.Logger) {
	m.registry.MustRegister(&openRuns{
		client: c, namespace: namespace, log: log,
		status:   prometheus.NewDesc("steward_open_runs", "Open runs by status.", []string{"status"}, nil),
		blockers: prometheus.NewDesc("steward_blocked_runs", "Open runs that are blocked, by the class of the blocker.", []string{"class"}, nil),
		unknown:  prometheus.NewDesc("steward_unknown_effects", "Open runs that ask an operator about a send of unknown outcome.", nil, nil),
		answers:  prometheus.NewDesc("steward_list_up", "1 when the list of runs could be read for this scrape.", nil, nil),
	})
}

// Describe implements prometheus.Collector.
func (o *openRuns) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{o.status, o.blockers, o.unknown, o.answers} {
		to <- d
	}
}

// listTime bounds the pass over the list at a scrape.
const listTime = 10 * time.Second

// Collect implements prometheus.Collector.
func (o *openRuns) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), listTime)
	defer cancel()
	statuses, blockers, err := o.count(ctx)
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if err != nil {
		o.log.Warn("the open runs cannot be counted", "error", err)
		gauge(o.answers, 0)
		return
	}
	gauge(o.answers, 1)
	gauge(o.unknown, blockers[string(policy.BlockedUnknown)])
	for status, n := range statuses {
		gauge(o.status, n, status)
	}
	for class, n := range blockers {
		gauge(o.blockers, n, class)
	}
}

func (o *openRuns) count(ctx context.Context) (statuses, blockers map[string]float64, err error) {
	statuses, blockers = map[string]float64{}, map[string]float64{}
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", workflows.TypeWorkflowRun)
	for token := []byte(nil); ; {
		page, err := o.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: o.namespace, Query: query, PageSize: 1000, NextPageToken: token,
		})
		if err != nil {
			return nil, nil, err
		}
		for _, info := range page.GetExecutions() {
			for name, into := range map[string]map[string]float64{
				workflows.AttributeStatus.GetName(): statuses, workflows.AttributeBlocker.GetName(): blockers,
			} {
				var value string
				if p := info.GetSearchAttributes().GetIndexedFields()[name]; p != nil && converter.GetDefaultDataConverter().FromPayload(p, &value) == nil {
					into[value]++
				}
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return statuses, blockers, nil
		}
	}
}
