// Package strict decodes JSON that a person or another program wrote, and tells everything that is wrong with it at once.
//
// encoding/json ignores unknown keys, takes the last of two equal keys, matches keys without regard to case, replaces
// invalid UTF-8 and stops at the first error. For an input that starts unattended work each of these hides a mistake.
// Unmarshal refuses them all and names each by its path. It is pure and deterministic: the same bytes give the same
// problems in the same order, so workflow code may call it.
package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Bounds of what Unmarshal looks at and reports.
const (
	// MaxBytes is the largest input, in bytes: the default payload limit of a Temporal server.
	MaxBytes = 2 << 20
	// MaxDepth is how deep objects and arrays may nest.
	MaxDepth = 64
	// MaxProblems is how many problems are kept; what goes beyond is only counted, in a last problem.
	MaxProblems = 100

	maxLine = 400 // bytes of one problem in Error()
	maxKey  = 64  // bytes of a key shown in a path or a message
)

// Problem is one thing that is wrong with an input.
type Problem struct {
	// Path leads to the value, like completion.checks[2].command.argv; empty for the input as a whole.
	Path string `json:"path"`
	// Message says what is wrong and what would be right.
	Message string `json:"message"`
}

// String is one line: path, colon, message.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// Error holds every problem of one input, in the order of the input.
type Error struct {
	Problems []Problem
}

// Error lists the problems, one per line. A line is cut at 400 bytes; the number of lines is bounded by MaxProblems.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i == MaxProblems+1 {
			fmt.Fprintf(&b, "\n… and %d more problems", len(e.Problems)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		line := strings.Map(oneLine, p.String())
		b.WriteString(clip(line, maxLine))
	}
	return b.String()
}

// Unmarshal decodes data into the value that v points to. The error is nil or an *Error with every problem found.
// The value is replaced as a whole when there is no problem and left alone otherwise. It panics when v is not a pointer
// or holds a type that JSON cannot fill, like a channel, a map with other than string keys or a `json:",string"` field.
//
// Beyond encoding/json it refuses: unknown keys, duplicate keys at any depth, keys that differ in case, null where no null
// can be stored, invalid UTF-8, broken \u escapes, arrays of another length than a Go array, and data beyond the bounds
// of this package. Types with UnmarshalJSON or UnmarshalText decode themselves; their errors become problems.
//
// The directive below is for reflection and encoding/json, which workflowcheck cannot see through; nothing else is ignored.
//
//workflowcheck:ignore
func Unmarshal(data []byte, v any) error {
	fresh := reflect.New(destination(v).Type())
	if problems := Partial(data, fresh.Interface()); len(problems) > 0 {
		return &Error{Problems: problems}
	}
	destination(v).Set(fresh.Elem())
	return nil
}

// Partial is Unmarshal for a caller that has more to say about the value: it stores what could be read also when there are
// problems, so that its own findings can be reported together with these (see Merge). What could not be read is zero.
//
//workflowcheck:ignore
func Partial(data []byte, v any) []Problem {
	target := destination(v)
	target.SetZero()
	if p := broken(data); p != nil {
		return []Problem{*p}
	}
	d := decoder{data: data}
	d.space()
	d.value(target)
	if d.dropped > 0 {
		d.problems = append(d.problems, Problem{Message: fmt.Sprintf("%d more problems are not listed", d.dropped)})
	}
	return d.problems
}

// Merge adds found, what a caller found in a value that Partial left, to read, what Partial said. A finding at or below a
// path that could not be read is left out, because it only repeats that.
func Merge(read, found []Problem) []Problem {
	merged := read[:len(read):len(read)]
	for _, f := range found {
		repeats := false
		for _, r := range read {
			rest, below := strings.CutPrefix(f.Path, r.Path)
			repeats = repeats || below && (rest == "" || r.Path == "" || rest[0] == '.' || rest[0] == '[')
		}
		if !repeats {
			merged = append(merged, f)
		}
	}
	return merged
}

func destination(v any) reflect.Value {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic(fmt.Sprintf("strict: %T is not a pointer to a value", v))
	}
	return target.Elem()
}

// broken finds what keeps the input from being read at all.
func broken(data []byte) *Problem {
	if len(data) > MaxBytes {
		return &Problem{Message: fmt.Sprintf("the input has %d bytes; at most %d are allowed", len(data), MaxBytes)}
	}
	if !utf8.Valid(data) {
		return &Problem{Message: "the input is not valid UTF-8 at " + position(data, invalidAt(data))}
	}
	if at := tooDeepAt(data); at >= 0 {
		return &Problem{Message: fmt.Sprintf("the input nests deeper than %d levels at %s", MaxDepth, position(data, at))}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return &Problem{Message: "the input is empty; give a JSON value"}
	}
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		at := len(data)
		if syntax, ok := err.(*json.SyntaxError); ok {
			at = max(int(syntax.Offset)-1, 0)
		}
		return &Problem{Message: fmt.Sprintf("the input is not valid JSON at %s: %v", position(data, at), err)}
	}
	return nil
}

func invalidAt(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
	return at
}

// tooDeepAt is the offset of the first bracket that opens a level beyond MaxDepth, or -1.
func tooDeepAt(data []byte) int {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

func position(data []byte, at int) string {
	before := data[:min(at, len(data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d", line, column)
}

// clip cuts s to at most limit bytes, at the start of a character.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// oneLine keeps a message from breaking out of its line.
func oneLine(r rune) rune {
	if r < 0x20 || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029' {
		return ' '
	}
	return r
}
