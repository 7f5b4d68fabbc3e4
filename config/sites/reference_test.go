package sites

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// keysOf are the keys of a type as docs/sites.md writes them.
func keysOf(prefix string, t reflect.Type) []string {
	var keys []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if name == "" {
			continue
		}
		switch inner := field.Type; {
		case inner == reflect.TypeFor[time.Duration](), inner == reflect.TypeFor[Pattern]():
			keys = append(keys, prefix+name)
		case inner.Kind() == reflect.Struct:
			keys = append(keys, keysOf(prefix+name+".", inner)...)
		case inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct && inner.Elem() != reflect.TypeFor[Pattern]():
			keys = append(keys, keysOf(prefix+name+"[].", inner.Elem())...)
		default:
			keys = append(keys, prefix+name)
		}
	}
	return keys
}

const guide = "../../docs/sites.md"

func TestTheGuideHasEveryKeyOfAProfile(t *testing.T) {
	text, err := os.ReadFile(guide)
	require.NoError(t, err)
	var rows []string
	for _, found := range regexp.MustCompile("(?m)^\\| `([a-z_.\\[\\]]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		if found[1] != "chatgpt" { // the table of built-in profiles
			rows = append(rows, found[1])
		}
	}
	require.Equal(t, keysOf("", reflect.TypeFor[Site]()), rows, "in the order of the types in site.go")
}

func TestTheProfilesOfTheGuideAreGood(t *testing.T) {
	text, err := os.ReadFile(guide)
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, blocks)
	files := map[string]string{}
	for _, block := range blocks {
		name := regexp.MustCompile(`(?m)^site: (.+)$`).FindStringSubmatch(block[1])
		files[name[1]+".yaml"] = block[1]
	}
	dir := dirOf(t, files)
	reg, err := Load(dir)
	require.NoError(t, err)
	require.True(t, slices.Contains(reg.Names(), "help-desk"))
	got, err := CheckFile(filepath.Join(dir, "chatgpt.yaml"), dir)
	require.NoError(t, err)
	require.Equal(t, []string{"page.send", "version"}, got.Overrides)
}
