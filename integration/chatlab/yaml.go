package chatlab

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// strict decodes a mapping into the struct that out points to. A key that the struct does not have is an error that
// names the line and the keys it knows. (yaml.Node.Decode alone forgets the strictness of its decoder.)
func strict(n *yaml.Node, out any) error {
	known := keysOf(reflect.TypeOf(out).Elem())
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: want a mapping with the keys %s", n.Line, strings.Join(known, ", "))
	}
	for i := 0; i < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(known, key.Value) {
			return fmt.Errorf("line %d: unknown key %q (known: %s)", key.Line, key.Value, strings.Join(known, ", "))
		}
	}
	return n.Decode(out)
}

// shorthand decodes a scalar into one field and a mapping into the whole struct.
func shorthand(n *yaml.Node, field, whole any) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(field)
	}
	return strict(n, whole)
}

func keysOf(t reflect.Type) []string {
	var keys []string
	for field := range t.Fields() {
		if key, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); key != "-" && key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// oneOf refuses a word that is not in the list; the empty word stands for the first of the list.
func oneOf(n *yaml.Node, key string, word *string, known ...string) error {
	if *word == "" {
		*word = known[0]
	}
	if !slices.Contains(known, *word) {
		return fmt.Errorf("line %d: %s is %q, want one of %s", n.Line, key, *word, strings.Join(known, ", "))
	}
	return nil
}

func notNegative(n *yaml.Node, key string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("line %d: %s is %s, want 0 or more", n.Line, key, d)
	}
	return nil
}
