package scan_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"steward/workflows/discover/scan"
	"steward/workflows/machine/strict/reference"
	"steward/workflows/run/goal"
)

func example(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/scan.yaml")
	require.NoError(t, err)
	raw, err := goal.FromYAML(data)
	require.NoError(t, err)
	return raw
}

func with(t *testing.T, changes map[string]any) []byte {
	t.Helper()
	var in map[string]any
	require.NoError(t, json.Unmarshal(example(t), &in))
	for key, value := range changes {
		outer, inner, nested := strings.Cut(key, ".")
		target := in
		if nested {
			target, outer = in[outer].(map[string]any), inner
		}
		if target[outer] = value; value == nil {
			delete(target, outer)
		}
	}
	raw, err := json.Marshal(in)
	require.NoError(t, err)
	return raw
}

func TestAScanIsReadAndFilled(t *testing.T) {
	s, problems := scan.Decode(example(t))
	require.Empty(t, problems)
	s = s.Normalize()
	require.Equal(t, []any{"chatgpt", 5, 200}, []any{s.Browser, *s.MaxEnrollments, *s.MaxConversations})
	g, problems := goal.Decode(s.Start("https://chatgpt.com/c/6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e"))
	require.Empty(t, problems)
	require.Equal(t, "https://chatgpt.com/c/6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e", g.Target.ConversationURL)
	require.Equal(t, []string{"chatgpt", "goal:orders-.*"}, []string{g.Target.Browser, g.Adopt.Scopes})

	s, problems = scan.Decode(with(t, map[string]any{"goal.adopt": nil}))
	require.Empty(t, problems)
	g, problems = goal.Decode(s.Start("https://chatgpt.com/c/1"))
	require.Empty(t, problems)
	require.NotNil(t, g.Adopt, "adopt is always on")
}

func TestABadScanIsToldWhole(t *testing.T) {
	for name, c := range map[string]struct {
		input []byte
		want  []string
	}{
		"both choices":      {with(t, map[string]any{"enroll.listed": []string{"a"}}), []string{"enroll: needs exactly one of"}},
		"no choice":         {with(t, map[string]any{"enroll": map[string]any{}}), []string{"enroll: needs exactly one of"}},
		"no time":           {with(t, map[string]any{"enroll.created_after": "yesterday"}), []string{"enroll.created_after: must be a time like"}},
		"no goal":           {with(t, map[string]any{"goal": nil}), []string{"goal: is missing"}},
		"a goal as text":    {with(t, map[string]any{"goal": "finish"}), []string{"goal: is missing"}},
		"a target":          {with(t, map[string]any{"goal.target": map[string]any{"site": "x"}}), []string{"goal.target: is each conversation's own"}},
		"a target and more": {with(t, map[string]any{"goal.target": 1, "goal.objective": ""}), []string{"goal.target: ", "goal.objective: "}},
		"a replan":          {with(t, map[string]any{"goal.replan": map[string]any{"operator": "me", "reason": "x", "add_rounds": 1}}), []string{"goal.replan: "}},
		"everything":        {with(t, map[string]any{"pageurl": "x", "page_url": "ftp://x", "max_enrollments": 0, "goal.objective": "", "goal.completion": map[string]any{}}), []string{"pageurl: unknown key", "page_url: must be", "max_enrollments: ", "goal.objective: ", "goal.completion.checks: "}},
		"too much":          {append(example(t), []byte(strings.Repeat(" ", goal.MaxBytes))...), []string{"the input has"}},
		"twice in the goal": {[]byte(strings.Replace(string(example(t)), `"objective"`, `"objective":"x","objective"`, 1)), []string{"goal.objective: "}},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := scan.Decode(c.input)
			var lines []string
			for _, p := range problems {
				lines = append(lines, p.String())
			}
			for _, want := range c.want {
				require.Contains(t, strings.Join(lines, "\n"), want)
			}
		})
	}
}

func TestTheWorkflowIDIsThatOfTheProject(t *testing.T) {
	want := scan.WorkflowID("chatgpt", "g-p-1")
	require.Empty(t, scan.IDProblem(want, want))
	require.Empty(t, scan.IDProblem(want+"-2026-11-30T10:00:00Z", want), "a schedule adds the time")
	require.NotEmpty(t, scan.IDProblem("discover:chatgpt:g-p-12", want))
}

func TestWhatIsChosen(t *testing.T) {
	s, problems := scan.Decode(example(t))
	require.Empty(t, problems)
	s = s.Normalize()
	at := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	excluded := s.Exclude[0]
	for _, c := range []struct {
		id      string
		created time.Time
		before  *scan.Entry
		want    scan.Standing
	}{
		{"a", at, nil, scan.Candidate},
		{"a", at.AddDate(0, -1, 0), nil, scan.NotChosen},
		{"a", time.Time{}, nil, scan.Undated},
		{excluded, at, nil, scan.Excluded},
		{"a", at, &scan.Entry{Standing: scan.Supervised}, scan.Supervised},
		{"a", at, &scan.Entry{Standing: scan.Postponed}, scan.Candidate},
		{"a", at, &scan.Entry{Standing: scan.Unreadable}, scan.Candidate},
	} {
		require.Equal(t, c.want, s.Stands(scan.Conversation{ID: c.id, CreatedAt: c.created}, c.before))
	}
	s.Enroll = scan.Enroll{Listed: []string{"a", excluded}}
	require.Equal(t, scan.Candidate, s.Stands(scan.Conversation{ID: "a"}, nil))
	require.Equal(t, scan.NotChosen, s.Stands(scan.Conversation{ID: "b"}, nil))
	require.Equal(t, scan.Excluded, s.Stands(scan.Conversation{ID: excluded}, nil), "exclude is stronger")
}

// What is known stays known: a missing line is no deletion, and a link without words takes no title away.
func TestAnInventoryIsKeptOverScans(t *testing.T) {
	first, later := time.Unix(1, 0), time.Unix(2, 0)
	before := scan.Merge(nil, []scan.Conversation{{ID: "a", Title: "A"}, {ID: "b", Title: "B"}}, first)
	before[1].Run = "run:x:b"
	now := scan.Merge(before, []scan.Conversation{{ID: "c"}, {ID: "b"}}, later)
	require.Equal(t, []string{"c", "b", "a"}, []string{now[0].ID, now[1].ID, now[2].ID})
	require.Equal(t, []any{"B", "run:x:b", first, later}, []any{now[1].Title, now[1].Run, now[1].FirstSeen, now[1].LastSeen})
	require.Equal(t, first, now[2].LastSeen)
	var many []scan.Conversation
	for i := range scan.MaxInventory {
		many = append(many, scan.Conversation{ID: fmt.Sprint(i)})
	}
	require.Len(t, scan.Merge(now, many, later), scan.MaxInventory)
}

var update = flag.Bool("update", false, "write docs/discovery-input.md")

const page = "../../../docs/discovery-input.md"

// TestDiscoveryInputReference keeps the reference of the input equal to the types. `go generate` rewrites it.
func TestDiscoveryInputReference(t *testing.T) {
	data, err := os.ReadFile("testdata/scan.yaml")
	require.NoError(t, err)
	comments, err := reference.Comments("scan.go")
	require.NoError(t, err)
	w := &reference.Writer{Comments: comments, Forms: map[string]string{"name": "`a-z 0-9 . _ -`", "key": "`A-Z a-z 0-9 . _ -`", "page": "https"}}
	fmt.Fprintf(w, intro, data)
	w.Section("The scan", "", reflect.TypeFor[scan.Scan]())
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(w.String()), 0o644))
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(w.String(), string(got)), "docs/discovery-input.md is stale; run go generate ./workflows/discover/scan")
}

const intro = `# The input of a scan

<!-- Generated from workflows/discover/scan by go generate; do not edit. -->

A scan is started with one input: JSON for ` + "`temporal schedule create`" + `, YAML or JSON for ` + "`steward discover start -f`" + `. Everything is
checked at the start, the goal of the runs included, and all problems are reported at once in one failure, ` + "`scan_refused`" + `. What a scan
does with it: [discovering.md](discovering.md).

` + "```yaml\n%s```\n"
