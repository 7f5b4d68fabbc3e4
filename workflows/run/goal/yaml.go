package goal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"steward/workflows/machine/strict"
)

// FromYAML turns a goal file into JSON for Decode, with its keys in the order of the file. JSON passes unchanged. Refused,
// with their line: duplicate keys, keys that are no strings, anchors, aliases and merge keys, more than one document,
// and numbers that JSON cannot express. The error is an *strict.Error with all of them.
func FromYAML(data []byte) ([]byte, error) {
	if len(data) > MaxBytes {
		return nil, yamlError("the file has %d bytes; at most %d are allowed", len(data), MaxBytes)
	}
	if json.Valid(data) {
		return data, nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, yamlError("the file is empty; give a goal")
	} else if err != nil {
		return nil, yamlError("the file is not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, yamlError("line %d: the file holds a second document; give one goal per file", more.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlError("the file is not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	c := converter{}
	c.node(document.Content[0], "", 1)
	if len(c.problems) > 0 {
		return nil, &strict.Error{Problems: c.problems}
	}
	return c.out.Bytes(), nil
}

func yamlError(format string, args ...any) error {
	return &strict.Error{Problems: []strict.Problem{{Message: fmt.Sprintf(format, args...)}}}
}

// converter writes YAML nodes as JSON.
type converter struct {
	out      bytes.Buffer
	problems []strict.Problem
}

func (c *converter) problem(n *yaml.Node, path, format string, args ...any) {
	message := fmt.Sprintf("line %d: ", n.Line) + fmt.Sprintf(format, args...)
	c.problems = append(c.problems, strict.Problem{Path: strings.TrimPrefix(path, "."), Message: message})
}

func (c *converter) node(n *yaml.Node, path string, depth int) {
	if depth > strict.MaxDepth {
		c.problem(n, path, "nests deeper than %d levels", strict.MaxDepth)
		return
	}
	if n.Anchor != "" {
		c.problem(n, path, "anchors are not supported; write the value out")
	}
	switch n.Kind {
	case yaml.MappingNode:
		c.mapping(n, path, depth)
	case yaml.SequenceNode:
		c.out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				c.out.WriteByte(',')
			}
			c.node(item, fmt.Sprintf("%s[%d]", path, i), depth+1)
		}
		c.out.WriteByte(']')
	case yaml.AliasNode:
		c.problem(n, path, "aliases are not supported; write the value out")
	default:
		c.scalar(n, path)
	}
}

func (c *converter) mapping(n *yaml.Node, path string, depth int) {
	first := map[string]int{}
	c.out.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if i > 0 {
			c.out.WriteByte(',')
		}
		at := path + "." + key.Value
		switch line, again := first[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
			c.problem(key, path, "a key must be a plain string")
		case again:
			c.problem(key, at, "the key appears twice, first on line %d; keep one", line)
		default:
			first[key.Value] = key.Line
		}
		c.text(key.Value)
		c.out.WriteByte(':')
		c.node(value, at, depth+1)
	}
	c.out.WriteByte('}')
}

func (c *converter) scalar(n *yaml.Node, path string) {
	var value any
	switch n.Tag {
	case "!!str", "!!timestamp":
		c.text(n.Value)
		return
	case "!!null":
		c.out.WriteString("null")
		return
	case "!!bool", "!!int", "!!float":
		if err := n.Decode(&value); err != nil {
			c.problem(n, path, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
			return
		}
	default:
		c.problem(n, path, "the tag %.40s is not supported", n.Tag)
		return
	}
	data, err := json.Marshal(value)
	if err != nil {
		c.problem(n, path, "%.40s cannot be expressed in JSON", n.Value)
		return
	}
	c.out.Write(data)
}

func (c *converter) text(s string) {
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("goal: a string cannot be written as JSON: %v", err))
	}
	c.out.Write(data)
}
