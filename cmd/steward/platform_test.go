package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/config"
)

// An upgrade that was interrupted is put back at the next start, and what it wrote is kept aside.
func TestInterruptedUpgradeIsPutBack(t *testing.T) {
	dir := t.TempDir()
	a := &app{settings: config.Settings{DataDir: dir}}
	database := filepath.Join(a.settings.ServerDir(), databaseFiles[0])
	require.NoError(t, writeFile(database, []byte("old")))
	p, err := a.openPlatform()
	require.NoError(t, err)
	require.False(t, p.upgrades(), "nothing ran here before")
	require.NoError(t, p.commit())
	p.record.Current = "another build"
	require.True(t, p.upgrades())
	require.NoError(t, p.begin())
	require.NoError(t, writeFile(database, []byte("new")))
	require.NoError(t, writeFile(filepath.Join(a.settings.ServerDir(), databaseFiles[1]), []byte("log of the new")))

	again, err := a.openPlatform()
	require.NoError(t, err)
	require.NotNil(t, again.record.Attempt)
	for range 2 {
		require.NoError(t, again.undo())
		text, err := os.ReadFile(database)
		require.NoError(t, err)
		require.Equal(t, "old", string(text))
		require.NoFileExists(t, filepath.Join(a.settings.ServerDir(), databaseFiles[1]))
	}
	aside, err := filepath.Glob(filepath.Join(again.dir, "replaced-*", "*"))
	require.NoError(t, err)
	require.Len(t, aside, 2)
	require.NoError(t, again.keep(os.Args[0]))
	require.FileExists(t, again.binary(again.own))
}

// Only the build that counts and the one before it are kept.
func TestOldBuildsGo(t *testing.T) {
	a := &app{settings: config.Settings{DataDir: t.TempDir()}}
	p, err := a.openPlatform()
	require.NoError(t, err)
	build := p.own
	for _, last := range []string{"a", "b", "c"} {
		p.own = digest(last)
		require.NoError(t, writeFile(p.binary(p.own), nil))
		require.NoError(t, p.commit())
	}
	require.Equal(t, platformRecord{Current: digest("c"), Previous: digest("b")}, p.record)
	require.NoDirExists(t, filepath.Join(p.dir, build))
	require.NoDirExists(t, filepath.Join(p.dir, digest("a")))
	require.FileExists(t, p.binary(digest("b")))
}

func digest(letter string) string {
	return letter + "123456789012345678901234567890123456789012345678901234567890123"
}
