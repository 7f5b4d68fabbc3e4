package home

import (
	"errors"
	"io/fs"
	"path/filepath"

	"steward/activities/recovery/durable"
)

// proven names the release of a home that is known-good.
type proven struct {
	Release string `json:"release"`
}

func provenFile(dir string) string { return filepath.Join(dir, "known-good.json") }

// MarkKnownGood writes down that a release is known-good in this home.
func MarkKnownGood(dir, release string) error {
	return durable.WriteJSON(provenFile(dir), proven{release})
}

// agreedRules is the rules version of the last release of a home that could not be undone any more.
type agreedRules struct {
	Release string `json:"release"`
	Rules   int    `json:"rules"`
}

func rulesFile(dir string) string { return filepath.Join(dir, "rules.json") }

// RulesCap is the rules version to which a release holds its runs at most, 0 for no bound. A release that is not known-good
// holds them at the version of the release before it, so that this one can take them back; a known-good one, and the first
// of a home, writes its own version down.
func RulesCap(dir, release string, current int) (int, error) {
	var good proven
	if err := durable.ReadJSON(provenFile(dir), &good); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	var agreed agreedRules
	err := durable.ReadJSON(rulesFile(dir), &agreed)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if err == nil && good.Release != release && agreed.Release != release {
		return agreed.Rules, nil
	}
	return 0, durable.WriteJSON(rulesFile(dir), agreedRules{release, current})
}
