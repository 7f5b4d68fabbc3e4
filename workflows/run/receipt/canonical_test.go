package receipt

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// plain is the definition of the canonical text, without regard to speed.
func plain(parts []string) string {
	return strings.Join(strings.Fields(norm.NFC.String(strings.Join(parts, " "))), " ")
}

func TestCanonicalTextFollowsItsDefinition(t *testing.T) {
	for _, parts := range [][]string{
		nil,
		{""},
		{" \n\t "},
		{"one"},
		{"  one  two\r\n\r\nthree\u00a0four\u2028five\u3000six\u0085 "},
		{"intro", "", "  ", "body"},
		{"Cafe\u0301 A\u030a \u1100\u1161 \u0958"},
		{"ab\xffcd\xe4\xb8", "\xe4ab cde"},
		{"继续使用此对话  中已有的\n上下文。", "한국어 か\u3099 🔄 ok\u200bzw\u200d"},
		{"func main() {\n\t\tif x {\n        return\n\t}\n}\n\n\n"},
		{"1234567 ", " 8"},
	} {
		require.Equal(t, plain(parts), CanonicalText(parts), "%q", parts)
	}
}

func TestCanonicalTextEqualsThePlainDefinitionForAnyText(t *testing.T) {
	piece := rapid.OneOf(
		rapid.StringN(0, 12, -1),
		rapid.SampledFrom([]string{" ", "  ", "\n", "\n\n", "\t", "\u00a0", "\u3000", "    ", "a", "word", "字", "e\u0301", "\u0301", "\xff", "한", "\u11a8"}),
	)
	rapid.Check(t, func(t *rapid.T) {
		var parts []string
		for range rapid.IntRange(0, 3).Draw(t, "parts") {
			parts = append(parts, strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), ""))
		}
		got := CanonicalText(parts)
		if got != plain(parts) {
			t.Fatalf("%q: got %q, want %q", parts, got, plain(parts))
		}
		if CanonicalText([]string{got}) != got {
			t.Fatalf("%q: not idempotent", parts)
		}
		sum := sha256.Sum256([]byte(got))
		if TextDigest(parts) != hex.EncodeToString(sum[:]) {
			t.Fatalf("%q: the digest is of another text", parts)
		}
	})
}

func TestInertRunesAreNeitherWhiteSpaceNorChangedByNFC(t *testing.T) {
	for r := rune(utf8.RuneSelf); r <= unicode.MaxRune; r++ {
		if inert(r) {
			p := norm.NFC.PropertiesString(string(r))
			require.True(t, p.BoundaryBefore() && norm.NFC.IsNormalString(string(r)) && !unicode.IsSpace(r), "U+%04X", r)
		}
	}
}
