package worker

import (
	"errors"
	"runtime/debug"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Deployment places a worker in Temporal's worker versioning. The zero value runs unversioned.
type Deployment struct {
	// Name is the worker deployment, for example "steward".
	Name string
	// BuildID is this build in it; empty takes Revision.
	BuildID string
}

// Revision is the version control revision that the binary was built from, with "-dirty" when the tree had changes, or
// the module version of an installed release. It is empty when the build recorded neither.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return revision(info)
}

func revision(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	switch commit := settings["vcs.revision"]; {
	case commit != "" && settings["vcs.modified"] == "true":
		return commit + "-dirty"
	case commit != "":
		return commit
	case info.Main.Version != "(devel)":
		return info.Main.Version
	}
	return ""
}

// options are the SDK's settings. AutoUpgrade: a run moves to the current version at its next workflow task; what could
// differ between versions is kept apart by the rules version in its state.
func (d Deployment) options() (worker.DeploymentOptions, error) {
	switch {
	case d.Name == "" && d.BuildID != "":
		return worker.DeploymentOptions{}, errors.New("a build id without a deployment name: give both, or neither to run unversioned")
	case d.Name == "":
		return worker.DeploymentOptions{}, nil
	case d.BuildID == "":
		if d.BuildID = Revision(); d.BuildID == "" {
			return worker.DeploymentOptions{}, errors.New(
				"this binary carries no revision (it was built outside of git, or with -buildvcs=false): give a build id")
		}
	}
	return worker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   worker.WorkerDeploymentVersion{DeploymentName: d.Name, BuildID: d.BuildID},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}, nil
}
