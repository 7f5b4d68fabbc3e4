package sites

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEmbeddedProfilesAreValid(t *testing.T) {
	reg, err := Load("")
	require.NoError(t, err)
	site, err := reg.Site("chatgpt")
	require.NoError(t, err)
	require.Len(t, site.Digest(), 64)
}
