package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const maxFile = 1 << 20 // bytes of a settings file

// readFile reads the settings file and refuses what no setting is named. A missing file is an empty one, unless it was
// named.
func readFile(path string, named bool) (map[string]any, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("settings file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("settings file: %w", err)
	case len(data) > maxFile:
		return nil, fmt.Errorf("%s: longer than %d bytes", path, maxFile)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if root.Kind == 0 || root.Content[0].Tag == "!!null" {
		return nil, nil
	}
	body := root.Content[0]
	if body.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: must be a mapping of settings", path, body.Line)
	}
	var settings map[string]any
	if err := body.Decode(&settings); err != nil { // duplicate keys, for example
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return settings, errors.Join(unknown(path, "", body)...)
}

// unknown finds the keys that are no setting, with their lines.
func unknown(path, prefix string, node *yaml.Node) (problems []error) {
	known := children(prefix)
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		full := prefix + name.Value
		kind, ok := known[name.Value]
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("%s:%d: unknown setting %s; known are %s", path, name.Line, full, list(known)))
		case kind == section && value.Kind == yaml.MappingNode:
			problems = append(problems, unknown(path, full+".", value)...)
		case kind == section && value.Tag != "!!null":
			problems = append(problems, fmt.Errorf("%s:%d: %s must be a mapping", path, value.Line, full))
		case kind == entries && value.Tag != "!!null":
			problems = append(problems, unknownEntries(path, value)...)
		}
	}
	return problems
}

func unknownEntries(path string, list *yaml.Node) (problems []error) {
	if list.Kind != yaml.SequenceNode {
		return []error{fmt.Errorf("%s:%d: browsers must be a list", path, list.Line)}
	}
	for i, entry := range list.Content {
		if entry.Kind != yaml.MappingNode {
			problems = append(problems, fmt.Errorf("%s:%d: browsers[%d] must be a mapping", path, entry.Line, i))
			continue
		}
		problems = append(problems, unknown(path, "browsers.", entry)...)
	}
	return problems
}

type kind int

const (
	setting kind = iota
	section
	entries
)

// children are the names that may stand below a section.
func children(prefix string) map[string]kind {
	known := map[string]kind{}
	if prefix == "" {
		known["browsers"] = entries
	}
	if prefix == "browsers." {
		for _, k := range browserKeys {
			known[k.name] = setting
		}
	}
	for _, k := range keys() {
		rest, ok := strings.CutPrefix(k.name, prefix)
		if !ok {
			continue
		}
		name, _, deeper := strings.Cut(rest, ".")
		if known[name] = setting; deeper {
			known[name] = section
		}
	}
	return known
}

func list(known map[string]kind) string {
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
