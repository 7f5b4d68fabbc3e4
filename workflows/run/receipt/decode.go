package receipt

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// member is one key of an object. The value is a string, []any, []member, or json.RawMessage for any other scalar.
type member struct {
	key   string
	value any
}

const maxDepth = 4 // levels of objects and arrays; a receipt has two

// object reads the JSON object at the start of s and returns what follows it. Unlike encoding/json it keeps duplicate keys.
func object(s string) (members []member, rest string, err error) {
	p := parser{in: s}
	v, err := p.value(0)
	if err != nil {
		return nil, "", err
	}
	members, ok := v.([]member)
	if !ok {
		return nil, "", errors.New("it is no object")
	}
	return members, s[p.at:], nil
}

// parser reads JSON. Its errors never repeat the text.
type parser struct {
	in string
	at int
}

// next skips white space and returns the byte it stands at, 0 at the end.
func (p *parser) next() byte {
	for p.at < len(p.in) {
		if c := p.in[p.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		p.at++
	}
	return 0
}

func (p *parser) wrong() error {
	if p.at >= len(p.in) {
		return errors.New("it ends too early")
	}
	return fmt.Errorf("a syntax error at byte %d", p.at+1)
}

func (p *parser) value(depth int) (any, error) {
	switch c := p.next(); c {
	case '"':
		return p.text()
	case '{', '[':
		if depth == maxDepth {
			return nil, errors.New("it nests too deep")
		}
		p.at++
		if c == '[' {
			return p.list(depth + 1)
		}
		return p.members(depth + 1)
	}
	end := p.at
	for end < len(p.in) && strings.IndexByte(" \n\t\r,]}", p.in[end]) < 0 {
		end++
	}
	scalar := json.RawMessage(p.in[p.at:min(end, p.at+maxFrame)])
	if !json.Valid(scalar) {
		return nil, p.wrong()
	}
	p.at = end
	return scalar, nil
}

func (p *parser) list(depth int) ([]any, error) {
	list := []any{}
	err := p.elements(']', func() error {
		v, err := p.value(depth)
		list = append(list, v)
		return err
	})
	return list, err
}

func (p *parser) members(depth int) ([]member, error) {
	members := []member{}
	err := p.elements('}', func() error {
		if p.next() != '"' {
			return p.wrong()
		}
		key, err := p.text()
		if err != nil {
			return err
		}
		if p.next() != ':' {
			return p.wrong()
		}
		p.at++
		v, err := p.value(depth)
		members = append(members, member{key, v})
		return err
	})
	return members, err
}

// elements calls read for each element up to the end bracket.
func (p *parser) elements(end byte, read func() error) error {
	if p.next() == end {
		p.at++
		return nil
	}
	for {
		if err := read(); err != nil {
			return err
		}
		switch p.next() {
		case end:
			p.at++
			return nil
		case ',':
			p.at++
		default:
			return p.wrong()
		}
	}
}

// text reads the string that begins at the quote.
func (p *parser) text() (string, error) {
	start, escaped := p.at, false
	for p.at++; p.at < len(p.in) && p.in[p.at] != '"'; p.at++ {
		switch c := p.in[p.at]; {
		case c < ' ':
			return "", p.wrong()
		case c == '\\':
			escaped = true
			p.at++
		}
	}
	if p.at >= len(p.in) {
		return "", p.wrong()
	}
	p.at++
	s := p.in[start+1 : p.at-1]
	if escaped || !utf8.ValidString(s) {
		if json.Unmarshal([]byte(p.in[start:p.at]), &s) != nil {
			return "", fmt.Errorf("a wrong escape in the string at byte %d", start+1)
		}
	}
	return s, nil
}

// plainSpaces replaces the blanks of a page outside strings by those that JSON knows.
func plainSpaces(s string) string {
	inString, escaped := false, false
	return strings.Map(func(r rune) rune {
		switch {
		case escaped:
			escaped = false
		case inString && r == '\\':
			escaped = true
		case r == '"':
			inString = !inString
		case !inString && blank(r):
			return ' '
		}
		return r
	}, s)
}

// repairs puts the escapes back that a renderer took away, and removes line breaks that it put into strings. It returns
// the members of each reading that makes the JSON valid, to tell a broken rendering from a broken receipt: the values are
// a guess and are never used.
func repairs(s string) (readings [][]member) {
	for _, loneBackslash := range []bool{true, false} {
		m := mender{in: plainBreaks(s), loneBackslash: loneBackslash}
		members, rest, err := object(m.mend())
		if err == nil && closing(rest) {
			readings = append(readings, members)
		}
	}
	return readings
}

// plainBreaks removes control characters; outside strings they mean nothing, inside they are not JSON.
func plainBreaks(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, plainSpaces(s))
}

// mender rewrites the strings of a JSON text so that a quote in one is escaped unless what follows shows that it closes.
type mender struct {
	in            string
	out           strings.Builder
	open          []byte // the enclosing brackets
	key           bool   // the next string is a key
	loneBackslash bool   // a backslash before a closing quote is itself an unescaped character
}

func (m *mender) mend() string {
	for i := 0; i < len(m.in); i++ {
		c := m.in[i]
		switch c {
		case '{', '[':
			m.open = append(m.open, c)
			m.key = c == '{'
		case '}', ']':
			m.open = m.open[:max(len(m.open)-1, 0)]
		case ',':
			m.key = m.inside() == '{'
		case ':':
			m.key = false
		case '"':
			i = m.text(i)
			continue
		}
		m.out.WriteByte(c)
	}
	return m.out.String()
}

func (m *mender) inside() byte {
	if len(m.open) == 0 {
		return 0
	}
	return m.open[len(m.open)-1]
}

// text copies the string that opens at i and returns the index of its closing quote.
func (m *mender) text(i int) int {
	m.out.WriteByte('"')
	for i++; i < len(m.in); i++ {
		c := m.in[i]
		switch {
		case c == '"' && m.closes(i+1):
			m.out.WriteByte('"')
			return i
		case c == '"':
			m.out.WriteString(`\"`)
		case c == '\\' && m.escape(i+1):
			m.out.WriteString(m.in[i : i+2])
			i++
		case c == '\\':
			m.out.WriteString(`\\`)
		default:
			m.out.WriteByte(c)
		}
	}
	return i
}

// escape tells whether the character at i makes a valid escape of the backslash before it.
func (m *mender) escape(i int) bool {
	if i >= len(m.in) || strings.IndexByte(`"\/bfnrtu`, m.in[i]) < 0 {
		return false
	}
	switch m.in[i] {
	case '"':
		return !m.loneBackslash || !m.closes(i+1)
	case 'u':
		return i+4 < len(m.in) && strings.Trim(m.in[i+1:i+5], "0123456789abcdefABCDEF") == ""
	}
	return true
}

// closes tells whether what stands at i can follow a closing quote here.
func (m *mender) closes(i int) bool {
	rest := strings.TrimLeft(m.in[i:], " ")
	if m.key {
		return strings.HasPrefix(rest, ":")
	}
	if m.inside() == '[' {
		return continues(rest, ']', `"`)
	}
	return continues(rest, '}', `"`) && (rest[0] == '}' || startsWithKey(rest[1:]))
}

// continues tells whether rest begins with the end bracket, or with a comma and the given next character.
func continues(rest string, end byte, next string) bool {
	if rest == "" {
		return false
	}
	after := strings.TrimLeft(rest[1:], " ")
	if rest[0] == end {
		return after == "" || strings.IndexByte(",}]", after[0]) >= 0 || len(after) < maxFrame && closing(after)
	}
	return rest[0] == ',' && strings.HasPrefix(after, next)
}

// startsWithKey tells whether s begins with one of the keys of a receipt and a colon.
func startsWithKey(s string) bool {
	name, rest, ok := strings.Cut(strings.TrimLeft(s, " ")[1:], `"`)
	_, known := keys[name]
	return ok && known && strings.HasPrefix(strings.TrimLeft(rest, " "), ":")
}
