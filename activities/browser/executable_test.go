package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheNewestChromiumOfPlaywrightIsTheLastResort(t *testing.T) {
	folder, installed := t.TempDir(), t.TempDir()
	t.Setenv("PATH", installed)
	t.Setenv("PLAYWRIGHT_BROWSERS_PATH", folder)
	_, err := Executable("")
	require.ErrorContains(t, err, "no Chrome or Chromium found")
	program := func(path string) string {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700))
		return path
	}
	for _, build := range []string{"chromium-999", "chromium-1187", "chromium-x", "firefox-2000"} {
		program(filepath.Join(folder, build, "chrome-linux", "chrome"))
	}
	newest := program(filepath.Join(folder, "chromium-1200", "chrome-linux64", "chrome"))
	found, err := Executable("")
	require.NoError(t, err)
	require.Equal(t, newest, found)

	own := program(filepath.Join(installed, "chromium"))
	found, err = Executable("")
	require.NoError(t, err)
	require.Equal(t, own, found)
	_, err = Executable("/nowhere/chrome")
	require.ErrorContains(t, err, "/nowhere/chrome")
}
