package main

import (
	"bytes"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuantilesAreOfTheSamples(t *testing.T) {
	samples := []float64{5, 1, 4, 2, 3}
	require.Equal(t, 3.0, quantile(samples, 0.5))
	require.Equal(t, 5.0, quantile(samples, 0.95))
	require.Equal(t, 1.0, quantile(samples, 0))
	require.Equal(t, []float64{5, 1, 4, 2, 3}, samples, "the samples keep their order")
	require.True(t, math.IsNaN(quantile(nil, 0.5)))
}

func TestMedianOfAnEvenNumberIsBetweenTheMiddleTwo(t *testing.T) {
	require.Equal(t, Figure{Median: 3, P95: 4}, figure([]float64{4, 2}))
}

func TestRowWithoutSamplesIsNotMeasured(t *testing.T) {
	b := &bench{dir: t.TempDir()}
	b.add(Row{What: "x", Figure: figure(nil)}.bar("≤ 2x", 1, 2, ""))
	b.add(Row{What: "y", Figure: figure([]float64{1})}.against("z", Figure{}))
	for _, r := range b.rows {
		require.Equal(t, notMeasured, r.Verdict)
	}
	require.NoError(t, b.write(filepath.Join(b.dir, "bench.json"), nil))
}

func TestBarThatIsNotMetSaysByHowMuchAndWhy(t *testing.T) {
	row := Row{What: "x", Unit: "ms", Figure: figure([]float64{3, 3, 6})}.against("y", Figure{Median: 2, P95: 2})
	require.Equal(t, 1.5, row.Ratio)

	good := row.bar("≤ 2x", row.Ratio, 2, "reason")
	require.Equal(t, met, good.verdict())
	require.Empty(t, good.Reason)

	bad := row.bar("≤ 1.25x", row.Ratio, 1.25, "the disk")
	require.Equal(t, "not met (1.5, +20 %)", bad.verdict())
	require.Equal(t, notMet, row.bar("≤ 2x", math.NaN(), 2, "nothing was measured").Verdict)

	var text bytes.Buffer
	printTable(&text, []Row{good, bad})
	require.Contains(t, text.String(), "x: not met, because the disk")
	require.Contains(t, text.String(), "1.50")
}
