// Package watchdog decides what follows from the health of a running service, without Temporal and without I/O: a few restarts,
// one rollback, or a stop that asks for a person. (Stable A / Candidate B and ReleaseSession authority, Decision.)
package watchdog

import "time"

// Policy are the numbers.
type Policy struct {
	// A restart needs at least RestartFailures failures in a row over RestartOver; at most Restarts, RestartEvery apart.
	RestartFailures int
	RestartOver     time.Duration
	Restarts        int
	RestartEvery    time.Duration
	// Healthy is how long the service has to be healthy without a break until its restarts are given back.
	Healthy time.Duration
	// A rollback needs at least RollbackFailures failures in a row over RollbackOver, all restarts used up, and Evidence
	// independent kinds of it.
	RollbackFailures int
	RollbackOver     time.Duration
	Evidence         int
}

// Default are the numbers of a service that nobody configured.
var Default = Policy{
	RestartFailures: 2, RestartOver: 5 * time.Second, Restarts: 3, RestartEvery: 10 * time.Second, Healthy: 5 * time.Minute,
	RollbackFailures: 6, RollbackOver: 30 * time.Second, Evidence: 2,
}

// Kinds of evidence that a service is not well.
const (
	// NotRunning: its process is gone, or is not the one that owns the home.
	NotRunning = "not_running"
	// NotReady: its readiness check does not pass.
	NotReady = "not_ready"
	// NotListening: nobody takes connections on its port.
	NotListening = "not_listening"
)

// Look is one observation. Without evidence the service is healthy.
type Look struct {
	At       time.Time
	Evidence []string
	// Unknown: nothing could be observed; the look counts for nothing.
	Unknown bool
	// RollbackTo: a validated known-good release that the active one, not known-good itself, may go back to.
	RollbackTo bool
}

// State is what the watchdog remembers of one release.
type State struct {
	Failures     int             `json:"failures,omitempty"`
	Since        time.Time       `json:"since,omitzero"`
	Evidence     map[string]bool `json:"evidence,omitempty"`
	HealthySince time.Time       `json:"healthy_since,omitzero"`
	Restarts     int             `json:"restarts,omitempty"`
	LastRestart  time.Time       `json:"last_restart,omitzero"`
	// RolledBack: the one rollback was used.
	RolledBack bool `json:"rolled_back,omitempty"`
	// Stopped: a person has to act; nothing more is done until the service is healthy again.
	Stopped bool `json:"stopped,omitempty"`
}

// Action is what to do.
type Action string

// The actions.
const (
	Nothing  Action = ""
	Restart  Action = "restart"
	Rollback Action = "rollback"
	Stop     Action = "stop"
)

// Decide takes one look.
func (p Policy) Decide(s State, l Look) (State, Action) {
	switch {
	case l.Unknown:
		return s, Nothing
	case len(l.Evidence) == 0:
		return p.healthy(s, l.At), Nothing
	}
	s.HealthySince = time.Time{}
	if s.Failures == 0 {
		s.Since, s.Evidence = l.At, map[string]bool{}
	}
	s.Failures++
	kinds := map[string]bool{}
	for kind := range s.Evidence {
		kinds[kind] = true
	}
	for _, kind := range l.Evidence {
		kinds[kind] = true
	}
	s.Evidence = kinds
	return p.unhealthy(s, l)
}

func (p Policy) healthy(s State, at time.Time) State {
	s.Failures, s.Since, s.Evidence, s.Stopped = 0, time.Time{}, nil, false
	if s.HealthySince.IsZero() {
		s.HealthySince = at
	}
	if at.Sub(s.HealthySince) >= p.Healthy {
		s.Restarts, s.LastRestart = 0, time.Time{}
	}
	return s
}

func (p Policy) unhealthy(s State, l Look) (State, Action) {
	lasts := l.At.Sub(s.Since)
	switch {
	case s.Stopped:
		return s, Nothing
	case s.Restarts < p.Restarts:
		if s.Failures < p.RestartFailures || lasts < p.RestartOver || s.Restarts > 0 && l.At.Sub(s.LastRestart) < p.RestartEvery {
			return s, Nothing
		}
		s.Restarts, s.LastRestart = s.Restarts+1, l.At
		return s, Restart
	case s.Failures < p.RollbackFailures, lasts < p.RollbackOver, l.At.Sub(s.LastRestart) < p.RestartEvery:
		return s, Nothing
	case l.RollbackTo && !s.RolledBack && len(s.Evidence) >= p.Evidence:
		s.RolledBack = true
		return s, Rollback
	}
	s.Stopped = true
	return s, Stop
}
