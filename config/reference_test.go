package config

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/settings.md")

const reference = "../docs/settings.md"

// TestSettingsReference keeps the reference equal to the settings. `go generate ./config` rewrites it.
func TestSettingsReference(t *testing.T) {
	want := document()
	if *update {
		require.NoError(t, os.WriteFile(reference, []byte(want), 0o644))
	}
	got, err := os.ReadFile(reference)
	require.NoError(t, err)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/settings.md is stale; run go generate ./config\n%s", diff)
	}
}

const intro = `# Settings

<!-- Generated from config by go generate; do not edit. -->

Every setting has a default, and may be set in three places; the later one wins:

1. the settings file: ` + "`--config`" + `, else ` + "`STEWARD_CONFIG`" + `, else ` + "`$XDG_CONFIG_HOME/steward/steward.yaml`" + ` (normally
   ` + "`~/.config/steward/steward.yaml`" + `)
2. an environment variable, as listed below; an empty one sets nothing, a list is separated by commas
3. a flag of the command, where the command has it (` + "`steward <command> --help`" + `)

Unknown keys in the file are errors, and everything that is wrong is reported at once. Paths are absolute or begin with ` + "`~/`" + `;
durations look like ` + "`90s`" + ` or ` + "`1m30s`" + `.

` + "```yaml" + `
log: {level: debug}
worker: {roles: [run, browser]}
browsers:
  - name: chatgpt
  - {name: work, site: chatgpt, mode: cdp, cdp_url: "http://127.0.0.1:9222", profile_dir: ~/chrome-work}
` + "```" + `

Which Temporal server is used: ` + "`temporal.address`" + ` or ` + "`temporal.profile`" + ` when one is set; else the embedded server of
` + "`data_dir`" + `, when one was ever started there; else what the temporal CLI would use (` + "`temporal.toml`" + `, ` + "`TEMPORAL_*`" + `).

| key | default | environment | flag | meaning |
| --- | --- | --- | --- | --- |
`

func document() string {
	var b strings.Builder
	b.WriteString(intro)
	for _, k := range keys() {
		flag := ""
		if k.flag != "" {
			flag = "`--" + k.flag + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", k.name, shown(k), k.env(), flag, k.doc)
	}
	b.WriteString("\n## Browsers\n\n`browsers` is a list with one entry for each login on this host; default: one named `chatgpt`. " +
		"`STEWARD_BROWSERS` takes the list in\nYAML or JSON.\n\n| key | default | meaning |\n| --- | --- | --- |\n")
	for _, k := range browserKeys {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.name, k.shown, k.doc)
	}
	return b.String()
}

func shown(k key) string {
	if k.shown != "" {
		return k.shown
	}
	switch value := k.value.(type) {
	case []string:
		return "`" + strings.Join(value, ", ") + "`"
	default:
		return fmt.Sprintf("`%v`", value)
	}
}

// leaves are the paths of the settings in a struct, with their types.
func leaves(prefix string, t reflect.Type) map[string]reflect.Type {
	found := map[string]reflect.Type{}
	for f := range t.Fields() {
		name := f.Tag.Get("mapstructure")
		switch {
		case name == "-":
		case f.Type.Kind() == reflect.Struct:
			maps.Copy(found, leaves(prefix+name+".", f.Type))
		default:
			found[prefix+name] = f.Type
		}
	}
	return found
}

func TestEverySettingHasAKeyOfItsTypeAndADescription(t *testing.T) {
	fields := leaves("", reflect.TypeFor[Settings]())
	flags := map[string]bool{}
	for _, k := range keys() {
		require.Equal(t, reflect.TypeOf(k.value), fields[k.name], k.name)
		require.NotEmpty(t, k.doc, k.name)
		require.True(t, k.shown != "" || !reflect.ValueOf(k.value).IsZero() || k.value == 0, k.name)
		require.False(t, k.flag != "" && flags[k.flag], k.flag)
		flags[k.flag] = true
		delete(fields, k.name)
	}
	require.Empty(t, fields)

	fields = leaves("", reflect.TypeFor[Browser]())
	for _, k := range browserKeys {
		require.Contains(t, fields, k.name)
		delete(fields, k.name)
	}
	require.Empty(t, fields)
	require.Equal(t, 30*time.Second, lookup("worker.stop_timeout").value)
}
