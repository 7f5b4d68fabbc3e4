package goal

import "time"

// Pace is how fast a site is tried again. It belongs to the site's facts, so that it is fixed with the start.
type Pace struct {
	// Retry is the wait before the second generation of an effect; it doubles up to 10 min.
	Retry Duration `json:"retry,omitzero"`
	// Defer is the wait after a deferral that names no time; it doubles up to 10 min.
	Defer Duration `json:"defer,omitzero"`
	// Reconcile are the waits before the looks at an effect of unknown outcome; then it is looked at once a day.
	Reconcile []Duration `json:"reconcile,omitempty"`
	// Unclear are the waits before a validation that could not tell is repeated.
	Unclear []Duration `json:"unclear,omitempty"`
	// Probe is the wait before the first probe of a blocked run; it grows up to 1 h.
	Probe Duration `json:"probe,omitzero"`
	// Heartbeat is the time after which a silent send is given up.
	Heartbeat Duration `json:"heartbeat,omitzero"`
}

// Filled is the pace with every default.
func (p Pace) Filled() Pace {
	set := func(d *Duration, value time.Duration) {
		if *d == 0 {
			*d = Duration(value)
		}
	}
	set(&p.Retry, 30*time.Second)
	set(&p.Defer, 30*time.Second)
	set(&p.Probe, 5*time.Minute)
	set(&p.Heartbeat, 15*time.Second)
	if len(p.Reconcile) == 0 {
		p.Reconcile = defaultReconcile
	}
	if len(p.Unclear) == 0 {
		p.Unclear = defaultUnclear
	}
	return p
}

var (
	defaultReconcile = []Duration{
		Duration(10 * time.Second), Duration(30 * time.Second), Duration(2 * time.Minute), Duration(10 * time.Minute),
	}
	defaultUnclear = []Duration{Duration(30 * time.Second), Duration(2 * time.Minute), Duration(10 * time.Minute)}
)
