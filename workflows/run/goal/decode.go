package goal

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"steward/workflows/machine/strict"
)

// MaxBytes is the largest start input: it becomes part of the state that every continue-as-new carries.
const MaxBytes = 128 << 10

// listedChecks is how many checks are looked at one by one: beyond, their number is the problem to tell.
const listedChecks = 32

// Decode reads a start input and checks it against everything that can be known without I/O. All problems are returned at
// once, in the order of the input and then of the schema; the goal is usable only when there are none. It fills no defaults:
// what is absent stays absent, so that a later start can be told from one that sets a value.
func Decode(raw []byte) (Goal, []strict.Problem) {
	var g Goal
	if len(raw) > MaxBytes {
		return g, []strict.Problem{{Message: fmt.Sprintf("the input has %d bytes; at most %d are allowed", len(raw), MaxBytes)}}
	}
	problems := strict.Partial(raw, &g)
	return g, strict.Merge(problems, g.Validate())
}

// Validate checks a goal that was not decoded from JSON in the same way as Decode.
func (g Goal) Validate() []strict.Problem {
	found := strict.Limits(g, forms)
	add := func(path, format string, args ...any) {
		found = append(found, strict.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	exactlyOne(add, "target", []string{"conversation_url", "new"}, g.Target.ConversationURL != "", g.Target.New != nil)
	if g.Adopt != nil && g.Target.New != nil {
		add("adopt", "is for an existing conversation; a new one works on nothing yet")
	}
	if len(g.Completion.Checks) == 0 && !g.Completion.OperatorApproval {
		add("completion.checks", "is empty; give at least one check, or set completion.operator_approval to true")
	}
	names := map[string]bool{}
	for i, c := range g.Completion.Checks[:min(len(g.Completion.Checks), listedChecks)] {
		path := fmt.Sprintf("completion.checks[%d]", i)
		if c.Name != "" && names[c.Name] {
			add(path+".name", "%q is used twice; give every check its own name", c.Name)
		}
		names[c.Name] = true
		c.validate(path, add)
	}
	for i, p := range g.Progress {
		path := fmt.Sprintf("progress[%d]", i)
		exactlyOne(add, path, []string{"git", "file", "check"}, p.Git != nil, p.File != nil, p.Check != "")
		if p.Check != "" && !names[p.Check] {
			add(path+".check", "there is no check %q in completion.checks", p.Check)
		}
	}
	return found
}

func (c Check) validate(path string, add func(path, format string, args ...any)) {
	exactlyOne(add, path, []string{"command", "file", "http"}, c.Command != nil, c.File != nil, c.HTTP != nil)
	if c.Command != nil && (len(c.Command.Argv) == 0 || c.Command.Argv[0] == "") {
		add(path+".command.argv", "is empty; give the program and its arguments as a list")
	}
	f := c.File
	if f == nil {
		return
	}
	rules := f.Contains + f.SHA256 + f.FreshFor + f.RunID + f.Total
	if f.Exists != nil && !*f.Exists && rules != "" {
		add(path+".file.exists", "is false, so no other rule can hold; leave the others out")
	}
	if re, err := regexp.Compile(f.Total); f.Total != "" && err == nil && re.NumSubexp() != 1 {
		add(path+".file.total", `has %d groups; it needs exactly one, around the count, like "([0-9]+) passed"`, re.NumSubexp())
	}
	if re, err := regexp.Compile(f.RunID); f.RunID != "" && err == nil && re.NumSubexp() > 1 {
		add(path+".file.run_id", "has %d groups; it may have one, around the id", re.NumSubexp())
	}
}

func exactlyOne(add func(path, format string, args ...any), path string, keys []string, given ...bool) {
	count := 0
	for _, is := range given {
		if is {
			count++
		}
	}
	if count != 1 {
		add(path, "needs exactly one of %s; %d are given", list(keys), count)
	}
}

// list joins words like "a, b and c".
func list(words []string) string {
	var text strings.Builder
	text.WriteString(words[0])
	for i, word := range words[1:] {
		if i == len(words)-2 {
			text.WriteString(" and " + word)
		} else {
			text.WriteString(", " + word)
		}
	}
	return text.String()
}

// Timeout is the longest time that all checks together may take, one after the other, with time for reading files and
// git work trees. The goal must be normalized.
func (c Completion) Timeout() time.Duration {
	total := time.Minute
	for _, check := range c.Checks {
		total += check.Timeout()
	}
	return total
}

// Timeout is the longest time that the check may take. The check must be normalized.
func (c Check) Timeout() time.Duration {
	switch {
	case c.Command != nil:
		return c.Command.Timeout.Std()
	case c.HTTP != nil:
		return c.HTTP.Timeout.Std()
	}
	return time.Minute
}
