package prompt

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// fill replaces each {name} in a template by its value and leaves out the lines with an empty one. It ends up with lines
// without trailing white space and with single blank lines.
func fill(template string, values map[string]string) string {
	var b strings.Builder
	b.Grow(2 * len(template))
	for line := range strings.SplitSeq(template, "\n") {
		if text, ok := fillLine(line, values); ok {
			b.WriteString(text)
			b.WriteByte('\n')
		}
	}
	return lines(b.String())
}

func fillLine(line string, values map[string]string) (string, bool) {
	if !strings.Contains(line, "{") {
		return line, true
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(line, "{")
		b.WriteString(before)
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			return b.String(), true
		}
		value := values[name]
		if name == "mention" && value != "" {
			value += " "
		} else if value == "" && name != "mention" {
			return "", false
		}
		b.WriteString(value)
		line = after
	}
}

const truncated = " … (cut)" // ends a text that was cut

const markerOpen = "[steward"

// neutral keeps a text from carrying the marker of an effect: a page is searched for it.
func neutral(s string) string {
	return strings.ReplaceAll(s, markerOpen, "(steward")
}

// line is s in one line: white space collapsed, no other control characters.
func line(s string) string {
	return strings.Join(strings.Fields(neutral(printable(s))), " ")
}

var newLines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n")

// text is s with its lines, in the plain form of lines.
func text(s string) string {
	s = newLines.Replace(s)
	return lines(neutral(printable(s)))
}

// lines is s without white space at the end of a line, without blank lines at either end, and with single ones between.
func lines(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	blank := true
	for line := range strings.SplitSeq(s, "\n") {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line == "" && blank {
			continue
		}
		blank = line == ""
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}

var quotes = strings.NewReplacer("“", `"`, "”", `"`, "<<<", "<<", ">>>", ">>", "```", "'''")

// quotable is text that is not ours, in one line that can stand between quotation marks and opens no block.
func quotable(s string) string {
	return quotes.Replace(line(s))
}

// printable drops control characters other than line breaks and tabs, and what is not UTF-8.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// clip cuts s to at most limit bytes, at the start of a character, and says so.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len(truncated)
	if cut <= 0 {
		return ""
	}
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.TrimRightFunc(s[:cut], unicode.IsSpace) + truncated
}
