package plan_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"steward/workflows/release/plan"
	"steward/workflows/run/goal"
)

func text(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("testdata/plan.yaml")
	require.NoError(t, err)
	return string(data)
}

// problems decodes the plan of the file with each pair of texts replaced.
func problems(t testing.TB, pairs ...string) []string {
	t.Helper()
	whole := text(t)
	for i := 0; i < len(pairs); i += 2 {
		require.Contains(t, whole, pairs[i])
	}
	raw, err := goal.FromYAML([]byte(strings.NewReplacer(pairs...).Replace(whole)))
	require.NoError(t, err)
	_, found := plan.Decode(raw)
	lines := make([]string, len(found))
	for i, p := range found {
		lines[i] = p.String()
	}
	return lines
}

func TestThePlanOfTheDocsIsValid(t *testing.T) {
	require.Empty(t, problems(t))
}

func TestEveryMistakeIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		pairs []string
		want  string
	}{
		"short revision": {[]string{"3f786850e387550fdab836ed7e6dc881de23001b", "3f78685"}, "source.revision: must be a whole commit id"},
		"missing gate":   {[]string{"  bootstrap: {argv: [bin/shop, --bootstrap, \"{source}/testdata\"]}\n", ""}, "gates.bootstrap.argv: is empty"},
		"runner of the host": {
			[]string{"argv: [gates/type]", "argv: [/usr/bin/true]"},
			`gates.type.argv[0]: is "/usr/bin/true"; it must be the path of a program inside the release`,
		},
		"runner outside": {[]string{"argv: [gates/type]", "argv: [../true]"}, "gates.type.argv[0]"},
		"both probes": {[]string{
			`mcp: {http: {url: "http://127.0.0.1:{port}/tools"}}`,
			`mcp: {http: {url: "http://127.0.0.1:{port}/tools"}, command: {argv: [x]}}`,
		}, "canaries.mcp: needs exactly one of command and http"},
		"no probe":        {[]string{`mcp: {http: {url: "http://127.0.0.1:{port}/tools"}}`, "mcp: {}"}, "canaries.mcp: needs exactly one"},
		"foreign address": {[]string{"http://127.0.0.1:{port}/tools", "http://example.com/tools"}, "canaries.mcp.http.url: must be an http address on this host"},
		"source in canary": {
			[]string{`[gates/restart, "{home}", "{port}"]`, `[gates/restart, "{source}"]`},
			"canaries.recovery_restart.command.argv[1]: holds {source}",
		},
		"relative home":     {[]string{"home: /var/lib/shop\n", "home: shop\n"}, "service.home: must be an absolute path"},
		"same port":         {[]string{"port: 8081", "port: 8080"}, "candidate.port: is 8080, like service.port"},
		"no candidate port": {[]string{"  port: 8081\n", ""}, "candidate.port: is 0 and service.port is 8080"},
		"same label":        {[]string{"label: shop-candidate", "label: shop"}, "candidate.label"},
		"home in home":      {[]string{"home: /var/lib/shop-candidate", "home: /var/lib/shop/b"}, "candidate.home: \"/var/lib/shop/b\" and service.home"},
		"same home":         {[]string{"home: /var/lib/shop-candidate", "home: /var/lib/shop"}, "overlap"},
		"unknown key":       {[]string{"instance: shop", "instance: shop\nsoack: {}"}, "soack"},
		"database says nothing": {
			[]string{", backward_compatible: true", ""},
			"service.database.backward_compatible: is missing",
		},
		"token outside": {[]string{"token_file: token", "token_file: ../token"}, "service.token_file: must be a plain relative path"},
		"no proof":      {[]string{"    kind: command\n    command: {argv: [gates/order, \"{port}\"]}", "    kind: steward"}, "soak.live_proof.steward: is missing"},
		"private variable": {
			[]string{"token_file: token", "token_file: token\n  env: [TEMPORAL_ADDRESS]"},
			"service.env[0]: must not be a variable of the recovery process itself",
		},
		"soak does not fit": {[]string{"soak:\n", "deadlines: {soak: 5m}\nsoak:\n"}, "deadlines.soak: is 5m; the soak alone takes 10m"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, strings.Join(problems(t, c.pairs...), "\n"), c.want)
		})
	}
}

func TestAllProblemsComeAtOnce(t *testing.T) {
	found := problems(t, "port: 8081", "port: 8080", "label: shop-candidate", "label: shop", "instance: shop", "instance: Shop!")
	require.Len(t, found, 3)
}

// A gate without what it needs never becomes a session that waits for ever.
func TestPublic_C07_AMissingFieldFailsFast(t *testing.T) {
	require.NotEmpty(t, problems(t, "argv: [gates/architecture]", "timeout: 1m"))
}

func TestNormalizeFillsEveryDefaultOnce(t *testing.T) {
	raw, err := goal.FromYAML([]byte(text(t)))
	require.NoError(t, err)
	p, found := plan.Decode(raw)
	require.Empty(t, found)
	once := p.Normalize()
	require.Empty(t, cmp.Diff(once, once.Normalize()))
	require.Empty(t, once.Validate(), "a normalized plan is valid input")
	require.Equal(t, "10m", once.Soak.Time.String())
	require.Equal(t, 30, *once.Soak.Performance.Windows)
	require.Equal(t, plan.Person, once.Origin)
	require.Nil(t, p.Soak.Time, "the plan it was called on keeps its value")
	require.False(t, once.NeedsPerson())
	*once.Service.Database.BackwardCompatible = false
	require.True(t, once.NeedsPerson(), "a database without a way back waits for a person")
}

func TestDecodeNeverPanics(t *testing.T) {
	whole := text(t)
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, len(whole)).Draw(t, "from")
		to := rapid.IntRange(from, min(len(whole), from+40)).Draw(t, "to")
		cut := whole[:from] + rapid.String().Draw(t, "text") + whole[to:]
		if raw, err := goal.FromYAML([]byte(cut)); err == nil {
			if p, found := plan.Decode(raw); len(found) == 0 {
				require.Empty(t, p.Normalize().Validate())
			}
		}
	})
}
