package goal_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"steward/workflows/run/goal"
)

func TestNormalize_fills_every_default(t *testing.T) {
	const want = `{
  "objective": "Tests pass.",
  "outcome": "Tests pass.",
  "target": {"site": "chatgpt", "browser": "chatgpt", "conversation_url": "https://chatgpt.com/c/6710A2f4-8d1c"},
  "scope": "goal:6710a2f4",
  "completion": {
    "host": "build-1",
    "checks": [
      {"name": "tests", "command": {"argv": ["go", "test"], "dir": "/src", "timeout": "10m", "exit": 0}},
      {"name": "file", "file": {"path": "/a", "exists": true}},
      {"name": "web", "http": {"url": "http://localhost", "status": 200, "timeout": "10s"}}
    ]
  },
  "continuation": {
    "max_rounds": 50, "max_repeated_state": 4, "stagnation_after": 2, "max_provider_failures": 3, "max_generations": 3,
    "unknown_bound": 4, "max_protocol_violations": 3, "max_recovery_epochs": 3, "max_recoveries": 0,
    "min_interval": "1m", "attention_after": "45m", "receipts": ["block", "compact"]
  },
  "user_blocker": {"allowed": ["authorization", "consent", "legal", "payment", "credentials", "physical_action", "decision"]}
}`
	text := strings.Replace(minimal, `}}]}}`, `}},{"name":"file","file":{"path":"/a"}},{"name":"web","http":{"url":"http://localhost"}}]},
		"continuation":{"max_recoveries":0}}`, 1)
	g := decode(t, text)
	before, _ := json.Marshal(g)
	normal := g.Normalize(facts)
	if diff := cmp.Diff(decode(t, want), normal); diff != "" {
		t.Error(diff)
	}
	if after, _ := json.Marshal(g); string(after) != string(before) {
		t.Errorf("the goal itself was changed: %s", after)
	}
	other := facts
	other.MinInterval, other.Host = goal.Duration(time.Hour), "elsewhere"
	if diff := cmp.Diff(normal, normal.Normalize(other)); diff != "" {
		t.Errorf("normalizing twice: %s", diff)
	}
}

func TestNormalize_keeps_an_empty_list_of_blockers(t *testing.T) {
	g := decode(t, with(t, "user_blocker.allowed", raw(`[]`))).Normalize(facts)
	if g.UserBlocker.Allowed == nil || len(g.UserBlocker.Allowed) != 0 {
		t.Errorf("allowed: %#v", g.UserBlocker.Allowed)
	}
}

func TestNormalize_takes_the_outcome_from_the_first_sentence(t *testing.T) {
	for objective, want := range map[string]string{
		"Make `go test ./...` pass in v1.2 of it\nwithout changes, e.g. to the API. Then stop.": "Make `go test ./...` pass in v1.2 of it without changes, e.g. to the API.",
		"Ready? Go.":                       "Ready?",
		"No stop\n\nSecond paragraph.":     "No stop",
		"  a\tb  ":                         "a b",
		"测试通过。然后停止。":                       "测试通过。",
		"Done.":                            "Done.",
		strings.Repeat("ab ", 100) + "end": strings.Repeat("ab ", 66) + "a…",
	} {
		if got := decode(t, with(t, "objective", objective)).Normalize(facts).Outcome; got != want {
			t.Errorf("%q:\n got %q\nwant %q", objective, got, want)
		}
	}
}

func TestWorkflowID_and_scope_follow_the_target(t *testing.T) {
	existing := decode(t, minimal)
	fresh := decode(t, with(t, "target", raw(`{"site":"chatgpt","browser":"work","new":{"key":"Orders-green"}}`)))
	newFacts := goal.SiteFacts{Site: "chatgpt", PageURL: "https://chatgpt.com/"}
	if got := goal.WorkflowID(existing, facts); got != "run:chatgpt:6710a2f4-8d1c-8000" {
		t.Error(got)
	}
	if got := goal.WorkflowID(fresh, newFacts); got != "run:chatgpt:new:Orders-green" {
		t.Error(got)
	}
	if got := goal.WorkflowID(fresh, facts); got != "run:chatgpt:6710a2f4-8d1c-8000" {
		t.Error("a bootstrap that has its durable id:", got)
	}
	if got := fresh.Normalize(newFacts); got.Scope != "goal:Orders-green" || got.Target.Browser != "work" {
		t.Errorf("%+v", got)
	}
	short := facts
	short.ConversationID = "abc"
	if got := existing.Normalize(short).Scope; got != "goal:abc" {
		t.Error(got)
	}
}

func TestTimeout_sums_what_the_checks_may_take(t *testing.T) {
	g := decode(t, with(t, "completion.checks", checks(`{"name":"a","command":{"argv":["a"],"dir":"/a"}},
		{"name":"b","http":{"url":"http://localhost","timeout":"5s"}},{"name":"c","file":{"path":"/a"}}`))).Normalize(facts)
	if got := g.Completion.Timeout(); got != 12*time.Minute+5*time.Second {
		t.Error(got)
	}
}

func TestDuration_is_written_as_people_write_it(t *testing.T) {
	for text, want := range map[string]string{
		"10m": "10m", "600s": "10m", "90s": "1m30s", "1h": "1h", "60m30s": "1h0m30s", "0s": "0s", "250ms": "250ms", "24h": "24h", "-1m": "-1m",
	} {
		var d goal.Duration
		if err := json.Unmarshal([]byte(`"`+text+`"`), &d); err != nil {
			t.Fatal(err)
		}
		if got := d.String(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// FuzzDecode holds what is true of every input: it never panics, and an accepted goal survives normalizing.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(`{"objective":"a","target":{"site":"s","new":{"key":"k"}},"completion":{"operator_approval":true}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, problems := goal.Decode(data)
		if len(problems) > 0 {
			return
		}
		normal := g.Normalize(facts)
		again, err := json.Marshal(normal)
		if err != nil {
			t.Fatal(err)
		}
		back, problems := goal.Decode(again)
		if len(problems) > 0 {
			t.Fatalf("%s\nafter normalizing: %v", data, problems)
		}
		if diff := cmp.Diff(normal, back.Normalize(goal.SiteFacts{})); diff != "" {
			t.Fatal(diff)
		}
	})
}
