package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostNamesFitIntoQueueNames(t *testing.T) {
	for name, want := range map[string]string{
		"build-1": "build-1", "Build-1.Example.COM": "build-1", "my_host": "my-host", "": "localhost", "...": "localhost", "-x-": "x",
		"日本.example": "localhost", strings.Repeat("a", 70): strings.Repeat("a", 63),
	} {
		require.Equal(t, want, hostName(name), name)
	}
	require.Regexp(t, `^[a-z0-9][a-z0-9-]*$`, Host())
}
