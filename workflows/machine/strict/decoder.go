package strict

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonNumber      = reflect.TypeFor[json.Number]()
)

// decoder walks over JSON whose syntax is known to be valid. A value without a place to go (the zero reflect.Value) is
// walked all the same, for the duplicate keys in it.
type decoder struct {
	data     []byte
	pos      int
	path     []string
	problems []Problem
	dropped  int
}

func (d *decoder) problem(format string, args ...any) {
	if len(d.problems) == MaxProblems {
		d.dropped++
		return
	}
	path := strings.TrimPrefix(strings.Join(d.path, ""), ".")
	d.problems = append(d.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (d *decoder) space() {
	for d.pos < len(d.data) && strings.IndexByte(" \t\r\n", d.data[d.pos]) >= 0 {
		d.pos++
	}
}

// value decodes the value at pos into v and leaves pos behind it and the white space that follows.
func (d *decoder) value(v reflect.Value) {
	switch {
	case !v.IsValid():
		d.skip()
	case v.Kind() == reflect.Pointer:
		if d.data[d.pos] == 'n' {
			d.skip()
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.value(v.Elem())
	case reflect.PointerTo(v.Type()).Implements(jsonUnmarshaler):
		d.leaf(v, "")
	case reflect.PointerTo(v.Type()).Implements(textUnmarshaler):
		d.leaf(v, "a string")
	default:
		d.kind(v)
	}
}

func (d *decoder) kind(v reflect.Value) {
	t := v.Type()
	null := d.data[d.pos] == 'n'
	switch t.Kind() {
	case reflect.Struct:
		if d.expect("an object") {
			d.structure(v)
		}
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic(fmt.Sprintf("strict: %v: only string keys are supported", t))
		}
		if null {
			d.skip()
		} else if d.expect("an object") {
			d.mapping(v)
		}
	case reflect.Slice:
		switch {
		case null:
			d.skip()
		case t.Elem().Kind() == reflect.Uint8:
			d.leaf(v, "a string")
		case d.expect("an array"):
			d.list(v)
		}
	case reflect.Array:
		if d.expect("an array") {
			d.array(v)
		}
	case reflect.Interface:
		d.leaf(v, "")
	default:
		d.leaf(v, scalar(t))
	}
}

func scalar(t reflect.Type) string {
	switch k := t.Kind(); {
	case t == jsonNumber, k == reflect.Float32, k == reflect.Float64:
		return "a number"
	case k == reflect.String:
		return "a string"
	case k == reflect.Bool:
		return "true or false"
	case k >= reflect.Int && k <= reflect.Int64:
		return "a whole number"
	case k >= reflect.Uint && k <= reflect.Uint64:
		return "a whole number of at least 0"
	}
	panic(fmt.Sprintf("strict: %v cannot be decoded from JSON", t))
}

// found names the JSON type of the value that starts with c.
func found(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// expect tells whether the value at pos has the wanted type; if not it reports and walks over it.
func (d *decoder) expect(want string) bool {
	got := found(d.data[d.pos])
	if strings.HasPrefix(want, got) || strings.HasPrefix(want, "a whole number") && got == "a number" {
		return true
	}
	d.problem("must be %s, not %s", want, got)
	d.skip()
	return false
}

// leaf lets encoding/json fill v. An empty want takes every JSON type.
func (d *decoder) leaf(v reflect.Value, want string) {
	if want != "" && !d.expect(want) {
		return
	}
	start, before := d.pos, len(d.problems)+d.dropped
	end := d.skip()
	if len(d.problems)+d.dropped > before {
		return
	}
	err := json.Unmarshal(d.data[start:end], v.Addr().Interface())
	if mismatch, ok := err.(*json.UnmarshalTypeError); ok && want != "" {
		d.problem("must be %s that fits %s, not %s", want, mismatch.Type, clip(string(d.data[start:end]), maxKey))
	} else if err != nil {
		d.problem("%v", err)
	}
}

func (d *decoder) structure(v reflect.Value) {
	known := fields(v.Type())
	d.members(func(key string, again bool) {
		f := find(known, key)
		switch {
		case f == nil:
			d.problem("unknown key; known keys are %s", names(known))
			d.skip()
		case again:
			d.skip()
		default:
			d.value(place(v, f.index))
		}
	})
}

func (d *decoder) mapping(v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	d.members(func(key string, again bool) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(item)
		if !again {
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), item)
		}
	})
}

// members calls take for each member of the object at pos, with pos at the member's value.
func (d *decoder) members(take func(key string, again bool)) {
	seen := map[string]bool{}
	d.elements('}', func() {
		key := d.text()
		d.space()
		d.pos++ // the colon
		d.space()
		d.path = append(d.path, keyStep(key))
		if seen[key] {
			d.problem("the key appears twice; keep one")
		}
		take(key, seen[key])
		seen[key] = true
		d.path = d.path[:len(d.path)-1]
	})
}

// elements calls take at each element of the object or array at pos.
func (d *decoder) elements(end byte, take func()) {
	d.pos++
	d.space()
	for d.data[d.pos] != end {
		take()
		if d.data[d.pos] == ',' {
			d.pos++
			d.space()
		}
	}
	d.pos++
	d.space()
}

// indexed calls take at each element of the array at pos.
func (d *decoder) indexed(take func(i int)) (count int) {
	d.elements(']', func() {
		d.path = append(d.path, "["+strconv.Itoa(count)+"]")
		take(count)
		d.path = d.path[:len(d.path)-1]
		count++
	})
	return count
}

func (d *decoder) list(v reflect.Value) {
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	d.indexed(func(int) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(item)
		v.Set(reflect.Append(v, item))
	})
}

func (d *decoder) array(v reflect.Value) {
	count := d.indexed(func(i int) {
		if i < v.Len() {
			d.value(v.Index(i))
		} else {
			d.skip()
		}
	})
	if count != v.Len() {
		d.problem("must have %d elements, not %d", v.Len(), count)
	}
}

// skip walks over the value at pos, reports what is wrong inside it whatever its type, and returns where it ended.
func (d *decoder) skip() (end int) {
	switch d.data[d.pos] {
	case '{':
		d.members(func(string, bool) { end = d.skip() })
	case '[':
		d.indexed(func(int) { end = d.skip() })
	case '"':
		d.text()
		d.space()
	default:
		for d.pos < len(d.data) && strings.IndexByte(",]} \t\r\n", d.data[d.pos]) < 0 {
			d.pos++
		}
		d.space()
	}
	return d.pos
}

// text reads the string at pos and reports a \u escape that is half of a surrogate pair: encoding/json would replace it.
func (d *decoder) text() string {
	start := d.pos
	for d.pos++; d.data[d.pos] != '"'; d.pos++ {
		if d.data[d.pos] != '\\' {
			continue
		}
		d.pos++
		if d.data[d.pos] != 'u' {
			continue
		}
		high, low := d.escape(d.pos-1), d.escape(d.pos+5)
		switch {
		case high>>10 == 0xD800>>10 && low>>10 == 0xDC00>>10:
			d.pos += 10
		case high>>11 == 0xD800>>11:
			d.problem("holds the escape %s, which is half of a character", d.data[d.pos-1:d.pos+5])
			d.pos += 4
		default:
			d.pos += 4
		}
	}
	d.pos++
	var s string
	if err := json.Unmarshal(d.data[start:d.pos], &s); err != nil {
		panic(fmt.Sprintf("strict: a string of valid JSON did not decode: %v", err))
	}
	return s
}

// escape is the code unit of the \u escape at the offset, or 0 when none is there.
func (d *decoder) escape(at int) uint64 {
	if at+6 > len(d.data) || d.data[at] != '\\' || d.data[at+1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(string(d.data[at+2:at+6]), 16, 16)
	if err != nil {
		return 0
	}
	return unit
}
