package worker

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
)

// sdkLabels are the tags of the SDK that become labels; each of its metrics has all of them, and those that it does not set are
// empty. Other tags are dropped, so that no new one of the SDK can make the number of series grow.
var sdkLabels = []string{
	"namespace", "task_queue", "worker_type", "workflow_type", "activity_type", "operation", "poller_type", "failure_reason", "status_code",
}

// sdkMetrics hands the SDK's metrics to Prometheus, under the names of the SDK's documentation; a timer is a histogram in
// seconds.
type sdkMetrics struct {
	*sdkVectors
	tags map[string]string
}

type sdkVectors struct {
	registry   *prometheus.Registry
	mu         sync.Mutex
	counters   map[string]*prometheus.CounterVec
	gauges     map[string]*prometheus.GaugeVec
	histograms map[string]*prometheus.HistogramVec
}

func newSDKMetrics(registry *prometheus.Registry) *sdkMetrics {
	return &sdkMetrics{sdkVectors: &sdkVectors{
		registry: registry, counters: map[string]*prometheus.CounterVec{}, gauges: map[string]*prometheus.GaugeVec{},
		histograms: map[string]*prometheus.HistogramVec{},
	}}
}

// WithTags implements client.MetricsHandler.
func (s *sdkMetrics) WithTags(tags map[string]string) client.MetricsHandler {
	all := maps.Clone(s.tags)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, tags)
	return &sdkMetrics{s.sdkVectors, all}
}

// Counter implements client.MetricsHandler.
func (s *sdkMetrics) Counter(name string) client.MetricsCounter {
	v := vector(s.sdkVectors, s.counters, name, func() *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name + "_total", Help: "Of the Temporal SDK."}, sdkLabels)
	})
	return counter{v.With(s.labels())}
}

// Gauge implements client.MetricsHandler.
func (s *sdkMetrics) Gauge(name string) client.MetricsGauge {
	v := vector(s.sdkVectors, s.gauges, name, func() *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "Of the Temporal SDK."}, sdkLabels)
	})
	return gauge{v.With(s.labels())}
}

// Timer implements client.MetricsHandler.
func (s *sdkMetrics) Timer(name string) client.MetricsTimer {
	v := vector(s.sdkVectors, s.histograms, name, func() *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name + "_seconds", Help: "Of the Temporal SDK.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600, 3600},
		}, sdkLabels)
	})
	return timer{v.With(s.labels())}
}

// vector is the one of a name; it is registered when it is first used.
func vector[V prometheus.Collector](s *sdkVectors, known map[string]V, name string, build func() V) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := known[name]
	if !ok {
		v = build()
		known[name] = v
		s.registry.MustRegister(v)
	}
	return v
}

func (s *sdkMetrics) labels() prometheus.Labels {
	labels := make(prometheus.Labels, len(sdkLabels))
	for _, name := range sdkLabels {
		labels[name] = s.tags[name]
	}
	return labels
}

type (
	counter struct{ prometheus.Counter }
	gauge   struct{ prometheus.Gauge }
	timer   struct{ prometheus.Observer }
)

// Inc implements client.MetricsCounter.
func (c counter) Inc(n int64) { c.Add(float64(n)) }

// Update implements client.MetricsGauge.
func (g gauge) Update(value float64) { g.Set(value) }

// Record implements client.MetricsTimer.
func (t timer) Record(d time.Duration) { t.Observe(d.Seconds()) }
