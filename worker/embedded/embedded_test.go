package embedded

import (
	"context"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/common/log/tag"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestOptionsAreRefusedWithEveryProblem(t *testing.T) {
	_, err := Options{
		Host: "0.0.0.0", Port: 70000, UIPort: -2, Namespace: "temporal-system",
		SearchAttributes: map[string]enumspb.IndexedValueType{"WorkflowId": enumspb.INDEXED_VALUE_TYPE_KEYWORD},
	}.complete()
	for _, problem := range []string{
		"data folder: missing", `host "0.0.0.0": not a loopback address`, "port 70000", "UI port -2",
		`namespace "temporal-system"`, `search attribute "WorkflowId"`,
	} {
		require.ErrorContains(t, err, problem)
	}
}

func TestOnlyLoopbackHostsAreAccepted(t *testing.T) {
	for host, ok := range map[string]bool{
		"": true, "localhost": true, "127.0.0.1": true, "127.8.8.8": true, "::1": true,
		"0.0.0.0": false, "::": false, "192.168.1.2": false, "example.com": false,
	} {
		o, err := Options{DataDir: "x", Host: host}.complete()
		require.Equal(t, ok, err == nil, "%q: %v", host, err)
		require.True(t, filepath.IsAbs(o.DataDir))
	}
}

func TestStartCreatesNothingWhenRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	_, err := Start(t.Context(), Options{DataDir: dir, Host: "10.0.0.1"})
	require.ErrorContains(t, err, "not a loopback address")
	require.NoDirExists(t, dir)
}

func TestCancelledStartLeavesTheFolderFree(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Start(ctx, Options{DataDir: dir})
	require.ErrorIs(t, err, context.Canceled)
	lock, err := lockDir(dir)
	require.NoError(t, err)
	require.NoError(t, lock.Close())
}

func TestServerLogIsQuietUnlessSomethingIsWrong(t *testing.T) {
	var out strings.Builder
	l := newServerLogger(slog.New(slog.NewTextHandler(&out, nil)))
	l.Info("routine")
	l.Warn(noHTTP + ". Nexus is off.")
	require.Empty(t, out.String())

	l.With(tag.Address("here")).Warn("trouble", tag.Error(context.Canceled))
	require.Contains(t, out.String(), `level=WARN msg=trouble address=here error="context canceled"`)

	out.Reset()
	tagged := l.With(tag.Address("here"))
	l.stopping.Store(true)
	tagged.Error("lost a service")
	require.Empty(t, out.String())
}

func TestPorts(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	taken := busy.Addr().(*net.TCPAddr).Port
	takenAddress := busy.Addr().String()

	t.Run("a wanted port that is taken is an error", func(t *testing.T) {
		_, err := choosePorts(Options{Host: "127.0.0.1", UIPort: taken}, Endpoint{})
		require.ErrorContains(t, err, "UI port")
		require.ErrorContains(t, err, strconv.Itoa(taken))
	})
	t.Run("ports of the last run that are taken are replaced", func(t *testing.T) {
		p, err := choosePorts(Options{Host: "127.0.0.1"}, Endpoint{Address: takenAddress, UI: "http://" + takenAddress})
		require.NoError(t, err)
		chosen := []int{p.frontend, p.ui, p.history, p.matching, p.worker}
		for i, port := range chosen {
			require.NotZero(t, port)
			require.NotEqual(t, taken, port)
			require.NotContains(t, chosen[:i], port)
		}
	})
	t.Run("free ports of the last run are used again", func(t *testing.T) {
		first, err := choosePorts(Options{Host: "127.0.0.1"}, Endpoint{})
		require.NoError(t, err)
		again, err := choosePorts(Options{Host: "127.0.0.1"}, Endpoint{
			Address: hostPort("127.0.0.1", first.frontend), UI: "http://" + hostPort("127.0.0.1", first.ui),
		})
		require.NoError(t, err)
		require.Equal(t, first.frontend, again.frontend)
		require.Equal(t, first.ui, again.ui)
	})
	t.Run("no UI, no port", func(t *testing.T) {
		p, err := choosePorts(Options{Host: "127.0.0.1", UIPort: NoUI}, Endpoint{})
		require.NoError(t, err)
		require.Zero(t, p.ui)
	})
}

func TestLockIsReleasedByClosing(t *testing.T) {
	dir := t.TempDir()
	lock, err := lockDir(dir)
	require.NoError(t, err)
	_, err = lockDir(dir)
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, lock.Close())
	lock, err = lockDir(dir)
	require.NoError(t, err)
	require.NoError(t, lock.Close())
}

func TestEndpoint(t *testing.T) {
	dir := t.TempDir()
	_, err := ReadEndpoint(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)

	want := Endpoint{Address: "127.0.0.1:7233", UI: "http://127.0.0.1:8233", Namespace: "default", PID: 7}
	require.NoError(t, want.write(dir))
	got, err := ReadEndpoint(dir)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, []string{filepath.Join(dir, endpointFile)}, filesUnder(t, dir), "no temporary file is left")

	require.NoError(t, os.WriteFile(filepath.Join(dir, endpointFile), []byte("{"), 0o600))
	_, err = ReadEndpoint(dir)
	require.ErrorContains(t, err, endpointFile)
}

func TestSearchAttributesTakeFreeColumns(t *testing.T) {
	keyword, number := enumspb.INDEXED_VALUE_TYPE_KEYWORD, enumspb.INDEXED_VALUE_TYPE_INT
	columns, err := addSearchAttributes(map[string]string{"Keyword01": "Mine"},
		map[string]enumspb.IndexedValueType{"B": keyword, "A": keyword, "N": number, "Mine": keyword})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Keyword01": "Mine", "Keyword02": "A", "Keyword03": "B", "Int01": "N"}, columns)

	_, err = addSearchAttributes(columns, map[string]enumspb.IndexedValueType{"A": number})
	require.ErrorContains(t, err, "search attribute A exists as Keyword and cannot become Int")

	_, err = addSearchAttributes(map[string]string{"Int01": "1", "Int02": "2", "Int03": "3"},
		map[string]enumspb.IndexedValueType{"N": number})
	require.ErrorContains(t, err, "all columns of type Int are taken")
}

func TestNamespaceKeepsALongerRetentionAndFollowsItsFolder(t *testing.T) {
	var c persistencespb.NamespaceConfig
	require.NoError(t, configureNamespace(&c, Options{DataDir: "/a b"}))
	require.Equal(t, Retention, c.GetRetention().AsDuration())
	require.Equal(t, "file:///a%20b/archive/history", c.GetHistoryArchivalUri())

	c.Retention = durationpb.New(90 * 24 * time.Hour)
	require.NoError(t, configureNamespace(&c, Options{DataDir: "/moved"}))
	require.Equal(t, 90*24*time.Hour, c.GetRetention().AsDuration())
	require.Equal(t, "file:///moved/archive/history", c.GetHistoryArchivalUri())
	require.Equal(t, "file:///moved/archive/visibility", c.GetVisibilityArchivalUri())
}
