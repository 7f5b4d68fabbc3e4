package config_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/config"
)

const profiles = `
[profile.default]
address = "default.example:7233"
namespace = "from-default"

[profile.cloud]
address = "cloud.example:7233"
namespace = "from-cloud"
`

func TestTheConnectionComesFromTheFirstThatIsSet(t *testing.T) {
	dir := home(t)
	settings := func(change func(*config.Temporal)) config.Settings {
		s, err := config.Load(nil)
		require.NoError(t, err)
		change(&s.Temporal)
		return s
	}
	connect := func(s config.Settings) (address, namespace string, embedded bool) {
		c, err := s.Connection()
		require.NoError(t, err)
		return c.Options.HostPort, c.Options.Namespace, c.Embedded
	}
	nothing := func(*config.Temporal) {}

	t.Setenv("TEMPORAL_CONFIG_FILE", write(t, filepath.Join(dir, "temporal.toml"), profiles))
	address, namespace, embedded := connect(settings(nothing))
	require.Equal(t, []any{"default.example:7233", "from-default", false}, []any{address, namespace, embedded})

	t.Setenv("TEMPORAL_ADDRESS", "env.example:7233")
	address, namespace, _ = connect(settings(nothing))
	require.Equal(t, []any{"env.example:7233", "from-default"}, []any{address, namespace})

	s := settings(nothing)
	write(t, filepath.Join(s.ServerDir(), "endpoint.json"), `{"address":"127.0.0.1:4321","ui":"http://127.0.0.1:8233","namespace":"mine","pid":1}`)
	address, _, embedded = connect(s)
	require.Equal(t, []any{"env.example:7233", false}, []any{address, embedded}, "what the caller's environment says is no leftover")
	t.Setenv("TEMPORAL_ADDRESS", "")
	address, namespace, embedded = connect(s)
	require.Equal(t, []any{"127.0.0.1:4321", "mine", true}, []any{address, namespace, embedded})
	c, err := s.Connection()
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:8233", c.UI)
	_, namespace, embedded = connect(settings(func(t *config.Temporal) { t.Namespace = "other" }))
	require.Equal(t, []any{"other", true}, []any{namespace, embedded})

	address, _, embedded = connect(settings(func(t *config.Temporal) { t.Address, t.Namespace = "set.example:7233", "n" }))
	require.Equal(t, []any{"set.example:7233", false}, []any{address, embedded})

	_, namespace, embedded = connect(settings(func(t *config.Temporal) { t.Profile = "cloud" }))
	require.Equal(t, []any{"from-cloud", false}, []any{namespace, embedded})

	_, err = settings(func(t *config.Temporal) { t.Profile = "none" }).Connection()
	require.ErrorContains(t, err, "none")

	for _, broken := range []string{"{", "{}", "[]"} {
		write(t, filepath.Join(s.ServerDir(), "endpoint.json"), broken)
		_, err = s.Connection()
		require.ErrorContains(t, err, "endpoint.json")
		require.ErrorContains(t, err, "temporal.address")
	}
}
