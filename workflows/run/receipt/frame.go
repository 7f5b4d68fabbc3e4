package receipt

import (
	"strings"
	"unicode"
)

// The frame of a block is what a page or a writer puts around a code block: white space, one fence, the language label,
// the words on the copy button. It is not text.

// maxFrame is the longest frame before an object, in bytes.
const maxFrame = 256

// unframe returns body from its first brace on, or nothing when more than a frame stands before it.
func unframe(body string) string {
	opening := strings.IndexByte(body[:min(len(body), maxFrame)], '{')
	if opening < 0 || !frame(body[:opening], true) {
		return ""
	}
	return body[opening:]
}

// closing tells whether s holds nothing but the end of a frame.
func closing(s string) bool {
	return frame(s, false)
}

// frame tells whether s holds nothing but a frame; a language label belongs to its start only.
func frame(s string, label bool) bool {
	fences := 0
	for line := range strings.Lines(s) {
		line = strings.TrimFunc(line, blank)
		if bare := strings.TrimLeft(line, "`~"); len(line)-len(bare) >= 3 {
			line = bare
			fences++
		}
		if fences > 1 || len(line) > maxFrame || !frameWord(strings.ToLower(line), label) {
			return false
		}
	}
	return true
}

func frameWord(line string, label bool) bool {
	for _, language := range []string{"plaintext", "text", "json"} {
		if rest, ok := strings.CutPrefix(line, language); ok && label {
			line = strings.TrimFunc(rest, blank)
			break
		}
	}
	return line == "" || line == "copy" || line == "copy code"
}

// lastLine is the last line that is no frame.
func lastLine(answer string) string {
	for {
		answer = strings.TrimRightFunc(answer, blank)
		cut := strings.LastIndexAny(answer, "\r\n") + 1
		line := strings.TrimFunc(answer[cut:], blank)
		if line == "" || !closing(line) {
			return line
		}
		answer = answer[:cut]
	}
}

// blank is white space, and what takes no space on a page.
func blank(r rune) bool {
	return unicode.IsSpace(r) || invisible(r) || r >= '\u200c' && r <= '\u200f'
}

// invisible runes are break opportunities that a renderer may insert anywhere: zero width space, word joiner, byte order
// mark, soft hyphen.
func invisible(r rune) bool {
	return r == '\u200b' || r == '\u2060' || r == '\ufeff' || r == '\u00ad'
}

func dropInvisible(s string) string {
	if !strings.ContainsAny(s, "\u200b\u2060\ufeff\u00ad") {
		return s
	}
	return strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return r
	}, s)
}
