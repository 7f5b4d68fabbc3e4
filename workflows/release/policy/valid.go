package policy

import "slices"

// valid tells whether the state is one of the policy's table, with what such a state cannot be without. All else fails
// closed. Source: "ReleaseSession state".
func (s *State) valid() bool {
	if s.Terminal() {
		return s.End != nil && s.Operation == nil && (s.Phase != KnownGood || s.complete())
	}
	at := slices.Index(Order, s.Phase)
	if at < 0 || s.End != nil {
		return false
	}
	reached := func(p Phase) bool { return at >= slices.Index(Order, p) }
	switch {
	case reached(SourceFrozen) && (s.Plan == nil || s.Session == "" || s.Source == ""):
		return false
	case reached(Built) && s.Release == "":
		return false
	case reached(StaticVerified) && !s.allGates():
		return false
	case reached(CandidateVerified) && !s.allCanaries():
		return false
	case reached(CutoverEligible) && (!s.Quiet || len(s.Stable.Overlap(s.Candidate)) > 0):
		return false
	case s.Phase == CutoverAttempting && s.Operation == nil:
		return false
	case reached(CutoverCommitted) != (s.Switch != nil):
		return false
	case s.Back != nil && !reached(CutoverAttempting):
		return false
	}
	return true
}

// complete tells whether everything is proven that known-good needs. Source: "ReleaseSession state", known_good.
func (s *State) complete() bool {
	return s.Soak.Performance && s.Soak.Served && s.Soak.Proof.Passed && s.Soak.Verified && s.Soak.Bundle != "" && s.Switch != nil
}

func (s *State) allGates() bool    { return s.nextGate() == "" }
func (s *State) allCanaries() bool { return s.nextCanary() == "" }
