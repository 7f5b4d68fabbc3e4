package setup

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindingsSayWhatToDo(t *testing.T) {
	for _, name := range []string{"PATH", nodeVariable, "PLAYWRIGHT_CLI_PATH", "PLAYWRIGHT_DRIVER_PATH", "PLAYWRIGHT_BROWSERS_PATH"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	for _, f := range Check(context.Background()) {
		require.False(t, f.OK, f.Name)
		require.NotEmpty(t, f.Detail, f.Name)
		require.NotEmpty(t, f.Fix, f.Name)
		require.Contains(t, f.String(), "By hand: "+f.Fix)
	}
}

func TestOldNodeIsNotTaken(t *testing.T) {
	node := filepath.Join(t.TempDir(), "node")
	for version, ok := range map[string]bool{"v18.20.4": false, "v20.1.0": true, "v100.0.0": true, "nonsense": false} {
		require.NoError(t, os.WriteFile(node, []byte("#!/bin/sh\necho "+version+"\n"), 0o700))
		t.Setenv(nodeVariable, node)
		require.Equal(t, ok, findNode(context.Background()).OK, version)
	}
}
