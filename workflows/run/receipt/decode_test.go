package receipt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// members as encoding/json would hold them.
func untyped(t require.TestingT, v any) any {
	switch v := v.(type) {
	case []member:
		m := map[string]any{}
		for _, x := range v {
			m[x.key] = untyped(t, x.value)
		}
		return m
	case []any:
		list := []any{}
		for _, x := range v {
			list = append(list, untyped(t, x))
		}
		return list
	case json.RawMessage:
		var scalar any
		require.NoError(t, json.Unmarshal(v, &scalar))
		return scalar
	}
	return v
}

func TestObjectReadsWhatEncodingJSONReads(t *testing.T) {
	token := rapid.SampledFrom([]string{
		"{", "}", "[", "]", ",", ":", `"a"`, `"b"`, `"\n\u00e9\ud83d\ude00"`, `"\x"`, `"\`, `"`, "\"a\x01\"", "\"\xff\"", `"\ud800"`, "1", "-0.5e9",
		"01", "true", "null", "nul", " ", "\n", "\t", "\u00a0", `{"a":1}`, `{"a":[]}`, `"k":"v"`, `"k":{"x":[1,"y"]}`, `{"a":1,"a":2}`,
	})
	valid := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 50 {
			s := "{" + strings.Join(rapid.SliceOfN(token, 0, 9).Draw(t, "tokens"), "") + rapid.SampledFrom([]string{"", "}"}).Draw(t, "end")
			members, rest, err := object(s)
			accepted := err == nil && strings.Trim(rest, " \n\t\r") == ""
			var reference map[string]any
			if json.Unmarshal([]byte(s), &reference) != nil {
				require.False(t, accepted, s)
				continue
			}
			if err != nil && strings.Contains(err.Error(), "deep") {
				continue
			}
			require.True(t, accepted, "%s: %v", s, err)
			require.Equal(t, reference, untyped(t, members), s)
			valid++
		}
	})
	require.Positive(t, valid)
}

func TestDuplicateKeysAreKept(t *testing.T) {
	members, rest, err := object(` {"a":"1","\u0061":"2"} rest`)
	require.NoError(t, err)
	require.Equal(t, []member{{"a", "1"}, {"a", "2"}}, members)
	require.Equal(t, " rest", rest)
}

func TestMendingFindsWhatTheRenderingBroke(t *testing.T) {
	for broken, meant := range map[string]string{
		`{"reason":"say "a", "b"","ask":"x"}`:              `say "a", "b"`,
		`{"reason":"C:\work\","ask":"x"}`:                  `C:\work\`,
		`{"ask":"x","reason":"end with "quotes""}`:         `end with "quotes"`,
		`{"reason":"a "b": c","ask":"x"}`:                  `a "b": c`,
		"{\"reason\":\"two\nlines\",\"ask\":\"x\"}":        "twolines",
		`{"reason":"an "{"a":1}" in it","evidence":["x"]}`: `an "{"a":1}" in it`,
	} {
		found := false
		for _, members := range repairs(broken) {
			for _, m := range members {
				found = found || m.key == "reason" && m.value == meant
			}
		}
		require.True(t, found, broken)
	}
	for _, broken := range []string{`{"reason":"x"`, `{"reason":}`, `{reason:"x"}`, `{"reason":"x",}`, `["x"]`, ``} {
		require.Empty(t, repairs(broken), broken)
	}
}
