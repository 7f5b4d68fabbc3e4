package main

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"steward/config"
)

func TestPasswordOnTheCommandLineIsRefused(t *testing.T) {
	for address, refused := range map[string]bool{
		"":                         false,
		"postgres://me@db/steward": false,
		"postgres://me@db/steward?sslmode=require":  false,
		"postgres://me:hunter2@db/steward":          true,
		"postgres://me@db/steward?password=hunter2": true,
		"postgres://me:hunter2@db:port/steward":     true,
	} {
		cmd := &cobra.Command{}
		config.AddFlags(cmd.Flags(), "server.postgres")
		if address != "" {
			require.NoError(t, cmd.Flags().Set("postgres", address))
		}
		err := refusePasswordFlag(cmd)
		if !refused {
			require.NoError(t, err, address)
			continue
		}
		require.ErrorContains(t, err, "PGPASSWORD")
		require.NotContains(t, err.Error(), "hunter2")
		require.Equal(t, exitUsage, exitCode(err))
	}
}
