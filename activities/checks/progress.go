package checks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"steward/activities"
	"steward/workflows/run/goal"
)

// ReadProgress looks at every progress probe once. A probe that cannot be read has a constant digest, so that it is never
// mistaken for progress. The error is only the end of ctx.
func (c *Checks) ReadProgress(ctx context.Context, in activities.ProgressInput) (activities.ProgressResult, error) {
	defer heartbeat(ctx)()
	result := activities.ProgressResult{Worker: c.worker}
	all := sha256.New()
	for _, probe := range in.Probes {
		var one activities.ProbeDigest
		switch {
		case probe.Git != nil:
			one = c.gitProgress(ctx, probe.Git.Dir)
		case probe.File != nil:
			one = c.fileProgress(ctx, probe.File.Path)
		default:
			one = c.checkProgress(ctx, probe.Check, in)
		}
		if err := context.Cause(ctx); err != nil {
			return activities.ProgressResult{}, err
		}
		fmt.Fprintf(all, "%q %q\n", one.Probe, one.Digest)
		result.Probes = append(result.Probes, one)
	}
	result.Digest = hex.EncodeToString(all.Sum(nil))
	return result, nil
}

const cannotTell = string(activities.CheckCannotTell)

func (c *Checks) gitProgress(ctx context.Context, path string) activities.ProbeDigest {
	probe := activities.ProbeDigest{Probe: "git:" + path, Digest: cannotTell}
	dir, _, err := c.limits.locate(path)
	if err != nil {
		probe.Code = activities.CheckRefused
		return probe
	}
	digest, err := revision(ctx, dir)
	if err != nil {
		probe.Code = activities.CheckNoRevision
		return probe
	}
	probe.Digest = digest
	return probe
}

func (c *Checks) fileProgress(ctx context.Context, path string) activities.ProbeDigest {
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	probe := activities.ProbeDigest{Probe: "file:" + path}
	if _, _, err := c.limits.locate(path); err != nil {
		probe.Digest, probe.Code = cannotTell, activities.CheckRefused
		return probe
	}
	read, err := c.read(ctx, path)
	switch {
	case err == nil:
		probe.Digest = "sha256:" + read.digest
	case errors.Is(err, fs.ErrNotExist):
		probe.Digest = "absent"
	case errors.Is(err, errNoFile):
		probe.Digest = "directory"
	case errors.Is(err, errChanged):
		probe.Digest, probe.Code = cannotTell, activities.CheckChangedMeanwhile
	default:
		probe.Digest, probe.Code = cannotTell, activities.CheckCannotRead
	}
	return probe
}

// checkProgress is the outcome of a check without anything that differs between two equal runs, such as times or output.
func (c *Checks) checkProgress(ctx context.Context, name string, in activities.ProgressInput) activities.ProbeDigest {
	probe := activities.ProbeDigest{Probe: "check:" + name, Digest: cannotTell, Code: activities.CheckCannotRun}
	var named []goal.Check
	for _, check := range in.Checks {
		if check.Name == name {
			named = append(named, check)
		}
	}
	if len(named) != 1 {
		return probe
	}
	result, err := c.Run(ctx, activities.CheckInput{Checks: named, Totals: in.Totals, RunIDs: in.RunIDs})
	if err != nil {
		return probe
	}
	e := result.Evidence[0]
	if probe.Code = ""; e.Outcome == activities.CheckCannotTell {
		probe.Code = e.Code
		return probe
	}
	probe.Digest = "check:" + string(e.Outcome)
	if e.Code != "" {
		probe.Digest += " " + e.Code
	}
	if e.Exit != nil {
		probe.Digest += fmt.Sprintf(" exit=%d", *e.Exit)
	}
	if e.Status != nil {
		probe.Digest += fmt.Sprintf(" status=%d", *e.Status)
	}
	if e.Total != nil {
		probe.Digest += fmt.Sprintf(" total=%d", *e.Total)
	}
	return probe
}
