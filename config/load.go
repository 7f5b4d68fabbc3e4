package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// Load reads the settings: defaults, then the settings file, then STEWARD_ environment variables, then the flags that were
// given. The file is --config, else STEWARD_CONFIG, else $XDG_CONFIG_HOME/steward/steward.yaml when there is one. Flags may
// be nil. The error names everything that is wrong, each with its key and what to do.
func Load(flags *pflag.FlagSet) (Settings, error) {
	v := viper.New()
	v.SetEnvPrefix("steward")
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	for _, k := range keys() {
		v.SetDefault(k.name, k.value)
		if flag := given(flags, k.flag); flag != nil {
			if err := v.BindPFlag(k.name, flag); err != nil {
				return Settings{}, fmt.Errorf("flag --%s: %w", k.flag, err)
			}
		}
	}
	path, named := filePath(flags)
	fromFile, err := readFile(path, named)
	if err != nil {
		return Settings{}, err
	}
	if err := v.MergeConfigMap(fromFile); err != nil {
		return Settings{}, fmt.Errorf("%s: %w", path, err)
	}
	var s Settings
	problems := decode(v, &s)
	if fromFile != nil {
		s.File = path
	}
	if len(problems) == 0 {
		s.fill(v, given(flags, "data-dir") != nil)
		problems = append(problems, s.Validate())
	}
	if err := errors.Join(problems...); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// given is a flag that the command has and its user gave.
func given(flags *pflag.FlagSet, name string) *pflag.Flag {
	if flags == nil || name == "" {
		return nil
	}
	if flag := flags.Lookup(name); flag != nil && flag.Changed {
		return flag
	}
	return nil
}

func filePath(flags *pflag.FlagSet) (path string, named bool) {
	if flag := given(flags, "config"); flag != nil {
		return flag.Value.String(), true
	}
	if path := os.Getenv("STEWARD_CONFIG"); path != "" {
		return expandHome(path), true
	}
	return under(configDir(), "steward.yaml"), false
}

// hooks turn the strings of environment and file into durations, lists and switches.
var hooks = mapstructure.ComposeDecodeHookFunc(
	mapstructure.StringToTimeDurationHookFunc(),
	splitList,
	func(from, to reflect.Type, value any) (any, error) {
		if b, ok := value.(bool); ok && to == reflect.TypeFor[Switch]() {
			return fmt.Sprint(b), nil
		}
		return value, nil
	},
)

func splitList(from, to reflect.Type, value any) (any, error) {
	text, ok := value.(string)
	if !ok || to != reflect.TypeFor[[]string]() {
		return value, nil
	}
	items := []string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items, nil
}

func decode(v *viper.Viper, s *Settings) []error {
	problems := wrongTypes("", v.Unmarshal(s, viper.DecodeHook(hooks)))
	raw := v.Get("browsers")
	if text, ok := raw.(string); ok { // STEWARD_BROWSERS
		var parsed []any
		if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
			return append(problems, fmt.Errorf("browsers: must be a list in YAML or JSON: %w", err))
		}
		raw = parsed
	}
	list, ok := raw.([]any)
	if raw != nil && !ok {
		return append(problems, errors.New("browsers: must be a list"))
	}
	for i, entry := range list {
		b := newBrowser()
		decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
			Result: &b, DecodeHook: hooks, ErrorUnused: true, WeaklyTypedInput: true,
		})
		if err != nil {
			return append(problems, err)
		}
		problems = append(problems, wrongTypes(fmt.Sprintf("browsers[%d].", i), decoder.Decode(entry))...)
		s.Browsers = append(s.Browsers, b)
	}
	return problems
}

// wrongTypes names the setting of each value that could not be decoded.
func wrongTypes(prefix string, err error) (problems []error) {
	var many interface{ Unwrap() []error }
	var one *mapstructure.DecodeError
	switch {
	case err == nil:
	case errors.As(err, &many):
		for _, e := range many.Unwrap() {
			problems = append(problems, wrongTypes(prefix, e)...)
		}
	case errors.As(err, &one):
		problems = append(problems, fmt.Errorf("%s%s: %w", prefix, one.Name(), one.Unwrap()))
	default:
		problems = append(problems, fmt.Errorf("%s%w", prefix, err))
	}
	return problems
}

// fill completes what depends on other settings or on the machine.
func (s *Settings) fill(v *viper.Viper, dataDirByFlag bool) {
	if s.DataDir == "" {
		s.DataDir = dataDir()
	} else if s.DataDir = expandHome(s.DataDir); dataDirByFlag {
		if abs, err := filepath.Abs(s.DataDir); err == nil { // a shell user means the present folder
			s.DataDir = abs
		}
	}
	if s.SitesDir = expandHome(s.SitesDir); s.SitesDir == "" {
		s.SitesDir = under(configDir(), "sites")
	}
	if s.Worker.Host == "" {
		s.Worker.Host = Host()
	}
	if s.Checks.OutputDir = expandHome(s.Checks.OutputDir); s.Checks.OutputDir == "" {
		s.Checks.OutputDir = under(s.DataDir, "checks")
	}
	s.Checks.Roots = whenSet(v, "checks.roots", s.Checks.Roots)
	s.Checks.Commands = whenSet(v, "checks.commands", s.Checks.Commands)
	for i, root := range s.Checks.Roots {
		s.Checks.Roots[i] = expandHome(root)
	}
	if s.Browsers == nil && v.Get("browsers") == nil {
		b := newBrowser()
		b.Name = "chatgpt"
		s.Browsers = []Browser{b}
	}
	for i := range s.Browsers {
		s.Browsers[i].fill(s.DataDir)
	}
}

func (b *Browser) fill(dataDir string) {
	if b.Site == "" {
		b.Site = b.Name
	}
	if b.ProfileDir = expandHome(b.ProfileDir); b.ProfileDir == "" && b.Name != "" {
		b.ProfileDir = under(dataDir, "browsers", b.Name, "profile")
	}
	b.Executable = expandHome(b.Executable)
}

// whenSet tells a list that was set, even to nothing, from one that was not.
func whenSet(v *viper.Viper, name string, list []string) []string {
	set := v.InConfig(name)
	for _, k := range keys() {
		set = set || k.name == name && os.Getenv(k.env()) != ""
	}
	switch {
	case !set:
		return nil
	case list == nil:
		return []string{}
	}
	return list
}
