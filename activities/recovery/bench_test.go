package recovery

import (
	"fmt"
	"testing"
	"time"

	"steward/activities"
)

// BenchmarkOutage measures the time in which the service does not serve: over a cutover, from the proven stop of the old release
// until the new one is ready, and over a plain stop and start of the same service.
func BenchmarkOutage(b *testing.B) {
	b.Run("cutover", func(b *testing.B) {
		l := newLab(b)
		l.mustWrite(100)
		releases := []string{l.release(map[string]any{"name": "B"}), l.a}
		var outage int64
		n := 0
		for b.Loop() {
			in := activities.OperationInput{ReleaseRef: l.ref(releases[n%2]), Operation: fmt.Sprint("c", n), Generation: 1}
			result, err := l.operations().Cutover(b.Context(), in)
			if err != nil || result.Failed != nil {
				b.Fatalf("%+v, %v", result.Failed, err)
			}
			outage += result.OutageMillis
			n++
		}
		b.ReportMetric(float64(outage)/float64(n), "outage-ms/op")
	})
	b.Run("plain restart", func(b *testing.B) {
		l := newLab(b)
		l.mustWrite(100)
		release := l.authority().Active
		var outage time.Duration
		n := 0
		for b.Loop() {
			if err := l.stop(b.Context(), release.Service); err != nil {
				b.Fatal(err)
			}
			stopped := time.Now()
			if err := l.bringUp(b.Context(), release); err != nil {
				b.Fatal(err)
			}
			outage += time.Since(stopped)
			n++
		}
		b.ReportMetric(float64(outage.Milliseconds())/float64(n), "outage-ms/op")
	})
}
