package strict

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Form checks one string and says what is wrong with it, or nothing. Its name stands in the struct tag `form`.
type Form func(value string) string

var (
	durationKind = reflect.TypeFor[time.Duration]()
	stringKind   = reflect.TypeFor[string]()
)

// Limits checks a value, and all that it holds, against the limits in its struct tags, and returns every problem in the
// order of the fields:
//
//   - max, min: the length of a string in characters, the value of a whole number or of a duration (in Go duration
//     notation). A string with a min is required; a string without max is a mistake of the programmer and panics.
//   - items: the most elements that a list may have. Every list needs it.
//   - lines: "true" allows line feeds and tabs. Other control characters and bidirectional overrides are always refused.
//   - form: the name of a Form for a string that is not empty, or for each element of a list of strings, which then may
//     not repeat itself.
//   - oneof: the allowed values, separated by spaces; like form.
//
// A nil pointer and an empty optional string are absent and not checked.
//
//workflowcheck:ignore
func Limits(v any, forms map[string]Form) []Problem {
	l := limiter{forms: forms}
	l.value(reflect.ValueOf(v), "", "")
	return l.problems
}

type limiter struct {
	forms    map[string]Form
	problems []Problem
}

func (l *limiter) problem(path, format string, args ...any) {
	l.problems = append(l.problems, Problem{Path: strings.TrimPrefix(path, "."), Message: fmt.Sprintf(format, args...)})
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

func (l *limiter) value(v reflect.Value, path string, tag reflect.StructTag) {
	switch kind := v.Kind(); {
	case kind == reflect.Pointer:
		if !v.IsNil() {
			l.value(v.Elem(), path, tag)
		}
	case kind == reflect.Struct:
		for _, f := range fields(v.Type()) {
			if held, err := v.FieldByIndexErr(f.index); err == nil {
				l.value(held, path+"."+f.name, v.Type().FieldByIndex(f.index).Tag)
			}
		}
	case v.Type() == rawMessage: // its reader has its own limits
	case kind == reflect.Slice:
		l.list(v, path, tag)
	case kind == reflect.String:
		l.text(v.String(), path, tag)
	case v.CanInt() && v.Type().ConvertibleTo(durationKind) && strings.ContainsAny(tag.Get("max"), "hms"):
		l.duration(time.Duration(v.Int()), path, tag)
	case v.CanInt():
		l.number(v.Int(), path, tag)
	case kind != reflect.Bool:
		panic(fmt.Sprintf("strict.Limits: %s: a %v has no limits", path, v.Type()))
	}
}

func (l *limiter) list(v reflect.Value, path string, tag reflect.StructTag) {
	most, err := strconv.Atoi(tag.Get("items"))
	if err != nil {
		panic(fmt.Sprintf("strict.Limits: the list %s has no limit: give it the struct tag items", path))
	}
	if v.Len() > most {
		l.problem(path, "has %d entries; at most %d are allowed", v.Len(), most)
		return
	}
	unique := v.Type().Elem() == stringKind && (tag.Get("form") != "" || tag.Get("oneof") != "")
	seen := map[string]bool{}
	for i := range v.Len() {
		at := fmt.Sprintf("%s[%d]", path, i)
		l.value(v.Index(i), at, tag)
		if unique {
			if text := v.Index(i).String(); seen[text] {
				l.problem(at, "%s is listed twice", strconv.Quote(clip(text, maxKey)))
			} else {
				seen[text] = true
			}
		}
	}
}

func (l *limiter) number(n int64, path string, tag reflect.StructTag) {
	low, high := bound(tag, "min", path, parseInt), bound(tag, "max", path, parseInt)
	if n < low || n > high {
		l.problem(path, "is %d; it must be between %d and %d", n, low, high)
	}
}

func (l *limiter) duration(d time.Duration, path string, tag reflect.StructTag) {
	low, high := bound(tag, "min", path, time.ParseDuration), bound(tag, "max", path, time.ParseDuration)
	if d < low || d > high {
		l.problem(path, "is %v; it must be between %s and %s", d, tag.Get("min"), tag.Get("max"))
	}
}

func parseInt(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }

// bound reads a limit that must be there.
func bound[T any](tag reflect.StructTag, name, path string, parse func(string) (T, error)) T {
	limit, err := parse(tag.Get(name))
	if err != nil {
		panic(fmt.Sprintf("strict.Limits: the struct tag %s of %s is %q: %v", name, path, tag.Get(name), err))
	}
	return limit
}

func (l *limiter) text(s, path string, tag reflect.StructTag) {
	most := bound(tag, "max", path, strconv.Atoi)
	least := 0
	if tag.Get("min") != "" {
		least = bound(tag, "min", path, strconv.Atoi)
	}
	length := utf8.RuneCountInString(s)
	switch {
	case length > most:
		l.problem(path, "has %d characters; at most %d are allowed", length, most)
	case utf8.RuneCountInString(strings.TrimSpace(s)) < least:
		l.problem(path, "is missing or too short; give at least %d characters", least)
	case s != "":
		l.content(s, path, tag)
	}
}

func (l *limiter) content(s, path string, tag reflect.StructTag) {
	if i := strings.IndexFunc(s, func(r rune) bool { return forbidden(r, tag.Get("lines") == "true") }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		l.problem(path, "holds the control character %U; remove it", r)
		return
	}
	if allowed := strings.Fields(tag.Get("oneof")); len(allowed) > 0 && !slices.Contains(allowed, s) {
		l.problem(path, "is %s; it must be one of %s", strconv.Quote(clip(s, maxKey)), strings.Join(allowed, ", "))
	}
	if name := tag.Get("form"); name != "" {
		form, ok := l.forms[name]
		if !ok {
			panic(fmt.Sprintf("strict.Limits: %s has the unknown form %q", path, name))
		}
		if wrong := form(s); wrong != "" {
			l.problem(path, "%s", wrong)
		}
	}
}

// forbidden tells the characters that could make a text look like another one.
func forbidden(r rune, lines bool) bool {
	if lines && (r == '\n' || r == '\t') {
		return false
	}
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}
