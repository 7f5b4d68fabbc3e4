package machine

import (
	"fmt"
	"strings"
)

// Page builds the Markdown of a workflow's current details line by line.
type Page struct{ strings.Builder }

// Line adds one line.
func (p *Page) Line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// longestText bounds what Text shows, in characters.
const longestText = 400

// Text keeps words of people, assistants and programs from becoming Markdown or HTML of a page, on one line and bounded.
func Text(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > longestText {
		s = string(r[:longestText-1]) + "…"
	}
	return strings.NewReplacer("<", "&lt;", "[", `\[`, "`", "'", "|", `\|`).Replace(s)
}
