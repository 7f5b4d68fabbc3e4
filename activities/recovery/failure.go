package recovery

import (
	"errors"

	"steward/activities"
	"steward/activities/recovery/home"
	"steward/activities/recovery/service"
	"steward/activities/recovery/source"
	"steward/activities/recovery/store"
)

// failureCode is the code by which a result names an error.
func failureCode(err error) string {
	for _, known := range []struct {
		err  error
		code string
	}{
		{ErrLocked, "locked"},
		{home.ErrStale, activities.ReleaseStale},
		{home.ErrConflict, "home_owned"},
		{ErrAuthority, "authority_changed"},
		{ErrNotInstalled, "stable_missing"},
		{errNoWayBack, "rollback_identity_missing"},
		{errNotArmed, "not_armed"},
		{source.ErrDrift, activities.ReleaseSourceChanged},
		{store.ErrChanged, activities.ReleaseChanged},
		{store.ErrMissing, activities.ReleaseChanged},
		{store.ErrNotPortable, "not_portable"},
		{service.ErrNotStopped, "not_stopped"},
		{errExited, "exited"},
		{errNoRunner, activities.ReleaseRunnerMissing},
	} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return "failed"
}

// definite turns an error that trying again cannot change into a failure of the result; every other error stays one.
func definite(err error) (*activities.ReleaseFailure, error) {
	if code := failureCode(err); err != nil && code != "failed" && code != "locked" {
		return &activities.ReleaseFailure{Code: code, Detail: shortError(err)}, nil
	}
	return nil, err
}

// failure is a failure of a result as an error, for those who call without Temporal.
func failure(f *activities.ReleaseFailure) error {
	if f == nil {
		return nil
	}
	return errors.New(f.Code + ": " + f.Detail)
}
