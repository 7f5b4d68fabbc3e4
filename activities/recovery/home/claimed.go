package home

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Variables by which a service that recovery started learns who it is.
const (
	EnvHome    = "STEWARD_SERVICE_HOME"
	EnvEpoch   = "STEWARD_SERVICE_EPOCH"
	EnvRelease = "STEWARD_SERVICE_RELEASE"
)

// Claimed is a home together with the claim of this process on it.
type Claimed struct {
	Dir string
	Claim
}

// FromEnvironment is what recovery told this process when it started it; nil when it did not.
func FromEnvironment() (*Claimed, error) {
	dir := os.Getenv(EnvHome)
	if dir == "" {
		return nil, nil
	}
	epoch, err := strconv.ParseUint(os.Getenv(EnvEpoch), 10, 64)
	if err != nil || !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("%s=%q and %s=%q do not name a home and its epoch", EnvHome, dir, EnvEpoch, os.Getenv(EnvEpoch))
	}
	return &Claimed{dir, Claim{Epoch: epoch, Release: os.Getenv(EnvRelease)}}, nil
}

// Fence says why nothing new may be begun: a release operation is under way, or another incarnation owns the home. Nil admits.
func (c Claimed) Fence() error {
	if err := Admit(c.Dir, time.Now()); err != nil {
		return err
	}
	return c.Check(c.Dir)
}
