package scan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"steward/workflows/machine/strict"
	"steward/workflows/run/goal"
)

// Decode reads the input of a scan and checks it against everything that can be known without I/O, the goal of its runs
// included. All problems are returned at once; the scan is usable only when there are none.
func Decode(raw []byte) (Scan, []strict.Problem) {
	var s Scan
	if len(raw) > goal.MaxBytes {
		return s, []strict.Problem{{Message: fmt.Sprintf("the input has %d bytes; at most %d are allowed", len(raw), goal.MaxBytes)}}
	}
	problems := strict.Partial(raw, &s)
	return s, strict.Merge(problems, s.Validate())
}

// Validate checks a scan that was not decoded from JSON in the same way as Decode.
func (s Scan) Validate() []strict.Problem {
	found := strict.Limits(s, goal.Forms())
	add := func(path, format string, args ...any) {
		found = append(found, strict.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	switch listed, after := len(s.Enroll.Listed) > 0, s.Enroll.CreatedAfter != ""; {
	case listed == after:
		add("enroll", "needs exactly one of listed and created_after")
	case after:
		if _, err := time.Parse(time.RFC3339, s.Enroll.CreatedAfter); err != nil {
			add("enroll.created_after", "must be a time like 2026-11-01T00:00:00Z")
		}
	}
	return append(found, s.template()...)
}

// template checks the goal: with a target in its place it must be a start input.
func (s Scan) template() []strict.Problem {
	var keys map[string]json.RawMessage
	if len(s.Goal) == 0 || json.Unmarshal(s.Goal, &keys) != nil || keys == nil {
		return []strict.Problem{{Path: "goal", Message: "is missing; give the start input of the runs as an object, without target"}}
	}
	var found []strict.Problem
	if _, given := keys["target"]; given {
		found = append(found, strict.Problem{Path: "goal.target", Message: "is each conversation's own; leave it out"})
		delete(keys, "target")
		rest, err := json.Marshal(keys)
		if err != nil {
			return found
		}
		s.Goal = rest
	}
	g, problems := goal.Decode(s.Start("https://example.com/"))
	if g.Replan != nil {
		problems = append(problems, strict.Problem{Path: "replan", Message: "is a person's word on one conversation; leave it out"})
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Path, "target") {
			p.Path = strings.TrimSuffix("goal."+p.Path, ".")
			found = append(found, p)
		}
	}
	return found
}

// Start is the start input of the run of one conversation.
func (s Scan) Start(conversationURL string) json.RawMessage {
	target := goal.Target{Site: s.Site, Browser: s.Browser, ConversationURL: conversationURL}
	begin, err := json.Marshal(map[string]any{"target": target})
	if err != nil {
		panic(fmt.Sprintf("scan: a target cannot be written as JSON: %v", err)) // our own type: cannot fail
	}
	rest := bytes.TrimSpace(s.Goal)
	start := bytes.TrimSuffix(begin, []byte("}"))
	var keys map[string]json.RawMessage
	if json.Unmarshal(rest, &keys) == nil && keys["adopt"] == nil {
		start = append(start, `,"adopt":{}`...)
	}
	if rest = bytes.TrimSpace(bytes.TrimPrefix(rest, []byte("{"))); !bytes.HasPrefix(rest, []byte("}")) {
		start = append(start, ',')
	}
	return append(start, rest...)
}

// Normalize fills every default.
func (s Scan) Normalize() Scan {
	if s.Browser == "" {
		s.Browser = s.Site
	}
	s.Enroll.Listed, s.Exclude = lower(s.Enroll.Listed), lower(s.Exclude)
	strict.Defaults(&s)
	return s
}

func lower(ids []string) []string {
	var canonical []string
	for _, id := range ids {
		canonical = append(canonical, strings.ToLower(id))
	}
	return canonical
}

// WorkflowID is the id that a scan of a project must have; a schedule adds a hyphen and the time.
func WorkflowID(site, project string) string { return "discover:" + site + ":" + project }

// IDProblem says what is wrong with the workflow id of a scan; empty when nothing is.
func IDProblem(got, want string) string {
	if got == want || strings.HasPrefix(got, want+"-") {
		return ""
	}
	return "the workflow id is " + strconv.Quote(got) + "; the scan of this project must be started as " + strconv.Quote(want)
}
