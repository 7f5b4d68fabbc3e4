package goal_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"steward/workflows/machine/strict"
	"steward/workflows/run/goal"
)

const minimal = `{"objective":"Tests pass.","target":{"site":"chatgpt","conversation_url":"https://chatgpt.com/c/6710A2f4-8d1c"},
"completion":{"checks":[{"name":"tests","command":{"argv":["go","test"],"dir":"/src"}}]}}`

var facts = goal.SiteFacts{
	Site: "chatgpt", ConversationID: "6710A2f4-8d1c-8000", ConversationURL: "https://chatgpt.com/c/6710a2f4-8d1c-8000",
	MinInterval: goal.Duration(time.Minute), Host: "build-1",
}

func decode(t *testing.T, text string) goal.Goal {
	t.Helper()
	g, problems := goal.Decode([]byte(text))
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	return g
}

// with is the minimal goal with one member of an object replaced, named by its path. A nil value removes it.
func with(t *testing.T, path string, value any) string {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal([]byte(minimal), &root); err != nil {
		t.Fatal(err)
	}
	at := root
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	if last := keys[len(keys)-1]; value == nil {
		delete(at, last)
	} else {
		at[last] = value
	}
	data, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

func checks(text string) json.RawMessage { return raw(`[` + text + `]`) }

func TestDecode_reads_the_example_of_the_reference(t *testing.T) {
	data, err := os.ReadFile("testdata/goal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	converted, err := goal.FromYAML(data)
	if err != nil {
		t.Fatal(err)
	}
	g := decode(t, string(converted))
	checks := g.Completion.Checks
	if checks[0].Command.Timeout.Std() != 10*time.Minute || *checks[2].HTTP.Status != 200 || g.Progress[2].Check != "tests" {
		t.Errorf("decoded as %+v", g)
	}
	// The example spells out the defaults, so filling them changes nothing but what it leaves out.
	normal := g.Normalize(facts)
	exists, timeout := true, goal.Duration(10*time.Second)
	checks[1].File.Exists, checks[2].HTTP.Timeout = &exists, &timeout
	if diff := cmp.Diff(g, normal); diff != "" {
		t.Errorf("the example does not show the defaults:\n%s", diff)
	}
}

func TestDecode_reports_every_problem(t *testing.T) {
	type p = string
	long := func(n int) string { return strings.Repeat("é", n) }
	at := func(path, message string) string { return strict.Problem{Path: path, Message: message}.String() }
	chars := func(path, message string) []p { return []p{at(path, message)} }
	const fileCheck = "completion.checks[0].file"
	tests := map[string]struct {
		text string
		want []p
	}{
		"minimal":               {minimal, nil},
		"longest objective":     {with(t, "objective", long(8000)), nil},
		"objective too long":    {with(t, "objective", long(8001)), chars("objective", "has 8001 characters; at most 8000 are allowed")},
		"no objective":          {with(t, "objective", " \n"), chars("objective", "is missing or too short; give at least 1 characters")},
		"lines in an objective": {with(t, "objective", "a\n\tb"), nil},
		"escape in an objective": {
			with(t, "objective", "a\x1b[2Jb"), chars("objective", "holds the control character U+001B; remove it"),
		},
		"outcome too long": {with(t, "outcome", long(201)), chars("outcome", "has 201 characters; at most 200 are allowed")},
		"lines in outcome": {with(t, "outcome", "a\nb"), chars("outcome", "holds the control character U+000A; remove it")},
		"no site":          {with(t, "target.site", nil), chars("target.site", "is missing or too short; give at least 1 characters")},
		"site in capitals": {
			with(t, "target.site", "ChatGPT"),
			chars("target.site", "must be lower-case letters, digits, dots, underscores and hyphens"),
		},
		"two targets": {
			with(t, "target.new", raw(`{"key":"k"}`)), chars("target", "needs exactly one of conversation_url and new; 2 are given"),
		},
		"no target": {
			with(t, "target.conversation_url", nil),
			chars("target", "needs exactly one of conversation_url and new; 0 are given"),
		},
		"http page": {
			with(t, "target.conversation_url", "http://chatgpt.com/c/1"),
			chars("target.conversation_url", "must be https; http is for loopback addresses only"),
		},
		"http loopback page":  {with(t, "target.conversation_url", "http://127.0.0.1:8080/c/1"), nil},
		"http loopback page6": {with(t, "target.conversation_url", "http://[::1]:8080/c/1"), nil},
		"http localhost":      {with(t, "target.conversation_url", "http://localhost/c/1"), nil},
		"user in a page": {
			with(t, "target.conversation_url", "https://a:b@chatgpt.com/c/1"),
			chars("target.conversation_url", "must not hold a user name or password"),
		},
		"no address": {
			with(t, "target.conversation_url", "chatgpt.com/c/1"),
			chars("target.conversation_url", "must be an absolute http or https address"),
		},
		"key with a slash": {
			with(t, "target", raw(`{"site":"a","new":{"key":"a/b"}}`)),
			chars("target.new.key", "must be letters, digits, dots, underscores and hyphens"),
		},
		"scope of no kind": {
			with(t, "scope", "orders"),
			chars("scope", "must be a kind, a colon and an id of letters, digits and ._:/#-, like goal:orders-green"),
		},
		"scope too long": {
			with(t, "scope", "goal:"+strings.Repeat("a", 508)),
			chars("scope", "has 513 characters; at most 512 are allowed"),
		},
		"relative checkout": {
			with(t, "context.workspace.checkout", "~/a"),
			chars("context.workspace.checkout", "must be an absolute path; ~ and variables are not expanded"),
		},
		"tool twice": {with(t, "context.tools", raw(`["a","a"]`)), chars("context.tools[1]", `"a" is listed twice`)},
		"nothing to verify": {
			with(t, "completion", raw(`{}`)),
			chars("completion.checks", "is empty; give at least one check, or set completion.operator_approval to true"),
		},
		"approval alone": {with(t, "completion", raw(`{"operator_approval":true}`)), nil},
		"33 checks": {
			with(t, "completion.checks", make([]struct{}, 33)),
			func() []p {
				found := chars("completion.checks", "has 33 entries; at most 32 are allowed")
				for i := range 32 {
					path := "completion.checks[" + itoa(i) + "]"
					found = append(found, at(path, "needs exactly one of command, file and http; 0 are given"))
				}
				return found
			}(),
		},
		"same name": {
			with(t, "completion.checks", checks(`{"name":"a","file":{"path":"/a"}},{"name":"a","file":{"path":"/b"}}`)),
			chars("completion.checks[1].name", `"a" is used twice; give every check its own name`),
		},
		"two kinds": {
			with(t, "completion.checks", checks(`{"name":"a","file":{"path":"/a"},"http":{"url":"http://127.0.0.1"}}`)),
			chars("completion.checks[0]", "needs exactly one of command, file and http; 2 are given"),
		},
		"empty argv": {
			with(t, "completion.checks", checks(`{"name":"a","command":{"argv":[],"dir":"/a"}},{"name":"b","command":{"argv":[""],"dir":"/a"}}`)),
			[]p{
				at("completion.checks[0].command.argv", "is empty; give the program and its arguments as a list"),
				at("completion.checks[1].command.argv", "is empty; give the program and its arguments as a list"),
			},
		},
		"command values": {
			with(t, "completion.checks", checks(`{"name":"a","command":{"argv":["a\n"],
				"dir":"a","timeout":"0s","env":["A=1"],"exit":256,"match":"("}}`)),
			[]p{
				at("completion.checks[0].command.argv[0]", "holds the control character U+000A; remove it"),
				at("completion.checks[0].command.dir", "must be an absolute path; ~ and variables are not expanded"),
				at("completion.checks[0].command.timeout", "is 0s; it must be between 1s and 1h"),
				at("completion.checks[0].command.env[0]", "must be the name of an environment variable, without a value"),
				at("completion.checks[0].command.exit", "is 256; it must be between 0 and 255"),
				at("completion.checks[0].command.match", "must be a regular expression (RE2): missing closing ): `(`"),
			},
		},
		"http values": {
			with(t, "completion.checks", checks(`{"name":"a","http":{"url":"ftp://x","status":0,"timeout":"61s"}}`)),
			[]p{
				at("completion.checks[0].http.url", "must be an absolute http or https address"),
				at("completion.checks[0].http.status", "is 0; it must be between 100 and 599"),
				at("completion.checks[0].http.timeout", "is 1m1s; it must be between 100ms and 1m"),
			},
		},
		"file values": {
			with(t, "completion.checks", checks(`{"name":"a","file":{"path":"a","sha256":"ABC",
				"fresh_for":".","run_id":"(a)(b)","total":"[0-9]+"}}`)),
			[]p{
				at(fileCheck+".path", "must be an absolute path; ~ and variables are not expanded"),
				at(fileCheck+".sha256", "must be 64 lower-case hex digits"),
				at(fileCheck+".fresh_for", "must be an absolute path; ~ and variables are not expanded"),
				at(fileCheck+".total", `has 0 groups; it needs exactly one, around the count, like "([0-9]+) passed"`),
				at(fileCheck+".run_id", "has 2 groups; it may have one, around the id"),
			},
		},
		"absent file with rules": {
			with(t, "completion.checks", checks(`{"name":"a","file":{"path":"/a","exists":false,"contains":"x"}}`)),
			chars(fileCheck+".exists", "is false, so no other rule can hold; leave the others out"),
		},
		"host": {with(t, "completion.host", "a b"), chars("completion.host", "must be a host name")},
		"too much evidence": {
			with(t, "completion.evidence.min", 17),
			chars("completion.evidence.min", "is 17; it must be between 0 and 16"),
		},
		"probes": {
			with(t, "progress", raw(`[{"check":"test"},{},{"git":{"dir":"/a"},"file":{"path":"/b"}},{"check":"tests"}]`)),
			[]p{
				at("progress[0].check", `there is no check "test" in completion.checks`),
				at("progress[1]", "needs exactly one of git, file and check; 0 are given"),
				at("progress[2]", "needs exactly one of git, file and check; 2 are given"),
			},
		},
		"no rounds": {
			with(t, "continuation.max_rounds", 0),
			chars("continuation.max_rounds", "is 0; it must be between 1 and 1000"),
		},
		"negative": {
			with(t, "continuation.max_recoveries", -1),
			chars("continuation.max_recoveries", "is -1; it must be between 0 and 10"),
		},
		"no recovery": {with(t, "continuation.max_recoveries", 0), nil},
		"no floor":    {with(t, "continuation.min_interval", "0s"), nil},
		"negative floor": {
			with(t, "continuation.min_interval", "-1s"),
			chars("continuation.min_interval", "is -1s; it must be between 0s and 24h"),
		},
		"number for a time": {
			with(t, "continuation.min_interval", 60),
			chars("continuation.min_interval", `must be a duration with a unit, like "90s" or "10m", not 60`),
		},
		"time of no unit": {
			with(t, "continuation.min_interval", "60"),
			chars("continuation.min_interval", `must be a duration with a unit, like "90s" or "10m", not "60"`),
		},
		"receipts": {
			with(t, "continuation.receipts", raw(`["block","json"]`)),
			chars("continuation.receipts[1]", `is "json"; it must be one of block, compact`),
		},
		"receipt twice": {
			with(t, "continuation.receipts", raw(`["block","block"]`)),
			chars("continuation.receipts[1]", `"block" is listed twice`),
		},
		"blocker": {
			with(t, "user_blocker.allowed", raw(`["tests"]`)),
			chars("user_blocker.allowed[0]", `is "tests"; it must be one of `+
				`authorization, consent, legal, payment, credentials, physical_action, decision, other`),
		},
		"replan": {
			with(t, "replan", raw(`{"reason":"x"}`)),
			[]p{
				at("replan.operator", "is missing or too short; give at least 1 characters"),
				at("replan.add_rounds", "is 0; it must be between 1 and 1000"),
			},
		},
		"no object": {`null`, chars("", "must be an object, not null")},
		"wrong types are not reported twice": {
			with(t, "completion.checks", "none"), chars("completion.checks", "must be an array, not a string"),
		},
		"reading and meaning together": {
			`{"objektive":"x","target":{"site":"a","new":{"key":"k"}},"completion":{"operator_approval":true},"scope":"x y"}`,
			[]p{
				at("objektive", "unknown key; known keys are "+
					"objective, outcome, target, context, scope, completion, progress, continuation, user_blocker, adopt, replan"),
				at("objective", "is missing or too short; give at least 1 characters"),
				at("scope", "must be a kind, a colon and an id of letters, digits and ._:/#-, like goal:orders-green"),
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, problems := goal.Decode([]byte(tt.text))
			var got []string
			for _, problem := range problems {
				got = append(got, problem.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func itoa(i int) string { b, _ := json.Marshal(i); return string(b) }

func TestDecode_bounds_the_whole_input(t *testing.T) {
	if _, got := goal.Decode(make([]byte, goal.MaxBytes+1)); len(got) != 1 || !strings.Contains(got[0].Message, "at most 131072") {
		t.Errorf("problems: %v", got)
	}
}
