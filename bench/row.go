package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"
)

// Row is one figure, its baseline in the same run and its bar.
type Row struct {
	What    string `json:"what"`
	Unit    string `json:"unit"`
	Samples int    `json:"samples,omitempty"`
	Figure  `json:"figure"`
	// Baseline is the same figure of BaselineWhat.
	Baseline     *Figure `json:"baseline,omitempty"`
	BaselineWhat string  `json:"baseline_what,omitempty"`
	Ratio        float64 `json:"ratio,omitempty"`
	// Bar in words; Limit bounds Judged. A row without a bar is only reported.
	Bar     string  `json:"bar,omitempty"`
	Judged  float64 `json:"judged,omitempty"`
	Limit   float64 `json:"limit,omitempty"`
	Verdict string  `json:"verdict"`
	// Reason says which limit stands behind a bar that is not met.
	Reason string `json:"reason,omitempty"`
	Note   string `json:"note,omitempty"`
}

// Figure is a distribution in two numbers.
type Figure struct {
	Median float64 `json:"median"`
	P95    float64 `json:"p95,omitempty"`
}

// Verdicts of a row.
const (
	met         = "met"
	notMet      = "not met"
	reported    = "reported"
	notMeasured = "not measured"
)

func figure(samples []float64) Figure {
	f := Figure{Median: quantile(samples, 0.5), P95: quantile(samples, 0.95)}
	if n := len(samples); n > 0 && n%2 == 0 {
		sorted := slices.Sorted(slices.Values(samples))
		f.Median = (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return f
}

// quantile of samples by the nearest rank; NaN without any.
func quantile(samples []float64, q float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[min(len(sorted)-1, max(0, int(math.Ceil(q*float64(len(sorted))))-1))]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// bar judges a row: value may be at most limit. The reason is kept only when it is not.
func (r Row) bar(words string, value, limit float64, reason string) Row {
	r.Bar, r.Judged, r.Limit, r.Verdict = words, value, limit, met
	if !(value <= limit) {
		r.Verdict, r.Reason = notMet, reason
	}
	return r
}

// against sets the baseline of a row and the ratio of the medians.
func (r Row) against(what string, base Figure) Row {
	r.Baseline, r.BaselineWhat, r.Ratio = &base, what, r.Median/base.Median
	return r
}

func (b *bench) add(r Row) {
	base := cmp.Or(r.Baseline, &Figure{})
	for _, v := range []float64{r.Median, r.P95, r.Ratio, r.Judged, base.Median, base.P95} {
		if math.IsNaN(v) || math.IsInf(v, 0) { // of no samples; JSON has no such number
			r = Row{What: r.What, Unit: r.Unit, Bar: r.Bar, Verdict: notMeasured}
			break
		}
	}
	if r.Verdict == "" {
		r.Verdict = reported
	}
	b.rows = append(b.rows, r)
}

func printTable(w io.Writer, rows []Row) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WHAT\tMEDIAN\tP95\tBASELINE\tP95\tRATIO\tBAR\tVERDICT")
	for _, r := range rows {
		base, baseP95, ratio := "", "", ""
		if r.Baseline != nil {
			base, baseP95, ratio = number(r.Baseline.Median, r.Unit), number(r.Baseline.P95, ""), fmt.Sprintf("%.2f", r.Ratio)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.What, number(r.Median, r.Unit), number(r.P95, ""), base, baseP95, ratio, r.Bar, r.verdict())
	}
	_ = table.Flush()
	for _, r := range rows {
		if r.BaselineWhat != "" {
			fmt.Fprintf(w, "\n%s: baseline is %s.", r.What, r.BaselineWhat)
		}
		if r.Note != "" {
			fmt.Fprintf(w, "\n%s: %s", r.What, r.Note)
		}
		if r.Reason != "" {
			fmt.Fprintf(w, "\n%s: not met, because %s", r.What, r.Reason)
		}
	}
	fmt.Fprintln(w)
}

// verdict is the last column: a bar that is not met says by how much.
func (r Row) verdict() string {
	if r.Verdict != notMet {
		return r.Verdict
	}
	return fmt.Sprintf("not met (%.3g, %+.0f %%)", r.Judged, 100*(r.Judged/r.Limit-1))
}

func number(v float64, unit string) string {
	if v == 0 && unit == "" || math.IsNaN(v) {
		return ""
	}
	text := fmt.Sprintf("%.3g", v)
	if math.Abs(v) >= 1000 {
		text = fmt.Sprintf("%.0f", v)
	}
	if unit == "" {
		return text
	}
	return text + " " + unit
}
