package strict

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const maxNames = 30 // known keys listed in a message

// field is a struct field that a JSON key fills.
type field struct {
	name   string
	index  []int
	tagged bool
}

// fields lists what the keys of an object may fill, with embedded structs flattened by the rules of encoding/json: of
// equal names the least nested wins, then the tagged one, and an undecided name is not filled at all.
func fields(t reflect.Type) []field {
	all := collect(t, nil, nil)
	var won []field
	for i, f := range all {
		wins := true
		for j, other := range all {
			if i != j && other.name == f.name && !f.beats(other) {
				wins = false
			}
		}
		if wins {
			won = append(won, f)
		}
	}
	return won
}

func (f field) beats(other field) bool {
	if len(f.index) != len(other.index) {
		return len(f.index) < len(other.index)
	}
	return f.tagged && !other.tagged
}

func collect(t reflect.Type, index []int, inside []reflect.Type) []field {
	if slices.Contains(inside, t) {
		return nil
	}
	inside = append(inside[:len(inside):len(inside)], t)
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case tag == "-":
		case strings.Contains(","+options+",", ",string,"):
			panic(fmt.Sprintf("strict: %v.%s: the json option \"string\" is not supported", t, f.Name))
		case f.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			if f.Type.Kind() == reflect.Pointer && !f.IsExported() {
				panic(fmt.Sprintf("strict: %v.%s: an embedded pointer to an unexported struct cannot be set", t, f.Name))
			}
			all = append(all, collect(embedded, at, inside)...)
		case !f.IsExported():
		case name == "":
			all = append(all, field{name: f.Name, index: at})
		default:
			all = append(all, field{name: name, index: at, tagged: true})
		}
	}
	return all
}

func find(known []field, key string) *field {
	for i := range known {
		if known[i].name == key {
			return &known[i]
		}
	}
	return nil
}

// names lists the known keys in the order of their declaration.
func names(known []field) string {
	if len(known) == 0 {
		return "none"
	}
	var list []string
	for _, f := range known {
		if len(list) == maxNames {
			list = append(list, "…")
			break
		}
		list = append(list, f.name)
	}
	return strings.Join(list, ", ")
}

// place is the field of v at the index; embedded pointers on the way are allocated.
func place(v reflect.Value, index []int) reflect.Value {
	for i, at := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(at)
	}
	return v
}

// keyStep is the part of a path that leads to a member: .key, or ["key"] for a key that is no plain word.
func keyStep(key string) string {
	plain := key != ""
	for _, r := range key {
		plain = plain && (r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r))
	}
	key = clip(key, maxKey)
	if plain {
		return "." + key
	}
	return "[" + strconv.Quote(key) + "]"
}
