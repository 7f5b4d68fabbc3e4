package discover

import (
	"fmt"
	"slices"
	"strings"

	"steward/workflows/discover/scan"
	"steward/workflows/machine"
)

// shown are the standings in the order in which they are told.
var shown = []scan.Standing{
	scan.Enrolled, scan.Candidate, scan.Postponed, scan.Known, scan.Supervised, scan.Excluded, scan.NotChosen, scan.Undated, scan.Moved,
	scan.Unreadable, scan.Refused,
}

const shownEntries = 40

// page is the scan as a Markdown page.
func (s *scanning) page() string {
	var b strings.Builder
	r := s.result
	fmt.Fprintf(&b, "**Project:** %s (`%s`, browser `%s`)\n\n", r.PageURL, r.Site, r.Browser)
	if s.doing != "" {
		fmt.Fprintf(&b, "**Now:** %s\n\n", s.doing)
	}
	fmt.Fprintf(&b, "%d conversations listed, %d runs started", r.Listed, len(r.Started))
	if r.Listed > 0 && !r.Complete {
		b.WriteString("; the page lists more than a scan reads")
	}
	if r.Contradictions > 0 {
		fmt.Fprintf(&b, "; %d links name another project and were not used", r.Contradictions)
	}
	b.WriteString("\n")
	if len(r.Inventory) > 0 {
		b.WriteString("\n| conversation | standing | title |\n| --- | --- | --- |\n")
	}
	entries := slices.Clone(r.Inventory)
	slices.SortStableFunc(entries, func(a, b scan.Entry) int { return slices.Index(shown, a.Standing) - slices.Index(shown, b.Standing) })
	for _, e := range entries[:min(len(entries), shownEntries)] {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", e.URL, strings.TrimSpace(string(e.Standing)+" "+machine.Text(e.Detail)), machine.Text(e.Title))
	}
	return b.String()
}
