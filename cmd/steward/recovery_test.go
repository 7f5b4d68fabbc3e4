package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"steward/activities/recovery"
)

func TestRecoveryOfAHostWithoutInstances(t *testing.T) {
	isolated(t)
	out, err := command(t.Context(), "", "recovery", "status")
	require.NoError(t, err)
	require.Contains(t, out, "steward recovery install")
	out, err = command(t.Context(), "", "recovery", "status", "--output", "json")
	require.NoError(t, err)
	require.Empty(t, decode[[]recovery.Status](t, out))
	_, err = command(t.Context(), "", "recovery", "verify")
	require.NoError(t, err)
}

func TestInstallRefusesAPlanThatIsNotWhole(t *testing.T) {
	isolated(t)
	_, err := command(t.Context(), "instance: x\n", "recovery", "install", "--plan", "-")
	require.Equal(t, exitUsage, exitCode(err))
	require.ErrorContains(t, err, "build.argv")
	_, err = command(t.Context(), "", "recovery", "install", "--plan", "/no/such/plan")
	require.Equal(t, exitUsage, exitCode(err))
	_, err = command(t.Context(), "", "recovery", "install")
	require.Equal(t, exitUsage, exitCode(err))
}

func TestLaunchOfNothingSaysSo(t *testing.T) {
	isolated(t)
	_, err := command(t.Context(), "", "recovery", "launch", "no spec")
	require.ErrorContains(t, err, "launch")
}
