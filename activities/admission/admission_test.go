package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/config/sites"
	"steward/workflows/machine/strict"
	"steward/workflows/run/goal"
)

const conversation = "6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e"

func registry(t *testing.T) *sites.Registry {
	t.Helper()
	r, err := sites.Load("")
	require.NoError(t, err)
	return r
}

func start(target string) []byte {
	return []byte(`{"objective":"Make the tests pass.","target":` + target + `,"completion":{"operator_approval":true}}`)
}

func TestAStartIsResolved(t *testing.T) {
	got, problems := Resolve(start(`{"site":"chatgpt","conversation_url":"https://chatgpt.com/c/`+strings.ToUpper(conversation)+`?model=x"}`), registry(t), "build-1")
	require.Empty(t, problems)
	require.Equal(t, "run:chatgpt:"+conversation, got.WorkflowID)
	require.Equal(t, conversation, got.Site.ConversationID)
	require.Equal(t, "https://chatgpt.com/c/"+conversation, got.Site.ConversationURL)
	require.Equal(t, "chatgpt", got.Goal.Target.Browser)
	require.Equal(t, "goal:6710a2f4", got.Goal.Scope)
	require.Equal(t, "build-1", got.Goal.Completion.Host)
	require.Equal(t, got.Site.MinInterval, *got.Goal.Continuation.MinInterval)

	const project = "https://chatgpt.com/g/g-p-0123456789abcdef-orders/project"
	for page, want := range map[string]string{"": "https://chatgpt.com/", `,"page_url":"` + project + `?x=1"`: project} {
		got, problems = Resolve(start(`{"site":"chatgpt","new":{"key":"orders-green"`+page+`}}`), registry(t), "build-1")
		require.Empty(t, problems)
		require.Equal(t, "run:chatgpt:new:orders-green", got.WorkflowID)
		require.Equal(t, []string{want, "", ""}, []string{got.Site.PageURL, got.Site.ConversationID, got.Site.ConversationURL})
		require.Equal(t, "goal:orders-green", got.Goal.Scope)
	}
	for _, page := range []string{"https://chatgpt.com/c/" + conversation, "https://example.com/", "https://chatgpt.com/settings"} {
		_, problems = Resolve(start(`{"site":"chatgpt","new":{"key":"k","page_url":"`+page+`"}}`), registry(t), "build-1")
		require.Contains(t, lines(problems), "target.new.page_url: ")
	}
}

// Every problem is told at once: what decoding finds and what the site finds.
func TestABadStartIsToldWhole(t *testing.T) {
	long := strings.Repeat("x", 8001)
	checks := strings.TrimSuffix(strings.Repeat(`{"name":"a","file":{"path":"/a"}},`, 100), ",")
	for name, c := range map[string]struct {
		input string
		want  []string
	}{
		"unknown field":      {`{"objective":"x","goal":1,"target":{"site":"chatgpt","conversation_url":"https://chatgpt.com/c/` + conversation + `"},"completion":{"operator_approval":true}}`, []string{"goal: "}},
		"wrong type":         {`{"objective":7,"target":{"site":"chatgpt","conversation_url":"https://chatgpt.com/c/` + conversation + `"},"completion":{"operator_approval":true}}`, []string{"objective: "}},
		"no contract":        {`{"objective":"x","target":{"site":"chatgpt","conversation_url":"https://chatgpt.com/c/` + conversation + `"},"completion":{}}`, []string{"completion.checks: "}},
		"foreign origin":     {string(start(`{"site":"chatgpt","conversation_url":"https://chatgpt.com.example.org/c/` + conversation + `"}`)), []string{"target.conversation_url: "}},
		"no conversation":    {string(start(`{"site":"chatgpt","conversation_url":"https://chatgpt.com/settings"}`)), []string{"target.conversation_url: "}},
		"unknown site":       {string(start(`{"site":"nowhere","conversation_url":"https://example.org/c/1"}`)), []string{"target.site: "}},
		"100 checks":         {`{"objective":"x","target":{"site":"chatgpt","conversation_url":"https://chatgpt.com/c/` + conversation + `"},"completion":{"checks":[` + checks + `]}}`, []string{"completion.checks: "}},
		"long objective":     {`{"objective":"` + long + `","target":{"site":"chatgpt","conversation_url":"https://chatgpt.com/c/` + conversation + `"},"completion":{"operator_approval":true}}`, []string{"objective: "}},
		"control characters": {`{"objective":"a\u0007b","target":{"site":"chatgpt","conversation_url":"https://chatgpt.com/c/` + conversation + `"},"completion":{"operator_approval":true}}`, []string{"objective: "}},
		"nothing":            {``, []string{""}},
		"no object":          {`[1]`, []string{""}},
		"several of all kinds": {
			`{"objective":"","extra":1,"target":{"site":"chatgpt","conversation_url":"https://example.org/c/1"},"completion":{}}`,
			[]string{"extra: ", "objective: ", "completion.checks: ", "target.conversation_url: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Resolve([]byte(c.input), registry(t), "build-1")
			text := lines(problems)
			require.NotEmpty(t, problems)
			for _, want := range c.want {
				require.Contains(t, "\n"+text, "\n"+want)
			}
		})
	}
}

func lines(problems []strict.Problem) string {
	var all []string
	for _, p := range problems {
		all = append(all, p.String())
	}
	return strings.Join(all, "\n")
}

func TestTheWorkflowIDMustBeTheOneOfTheTarget(t *testing.T) {
	got, _ := Resolve(start(`{"site":"chatgpt","conversation_url":"https://chatgpt.com/c/`+conversation+`"}`), registry(t), "build-1")
	require.Empty(t, got.idProblems("run:chatgpt:"+conversation))
	wrong := got.idProblems("run:chatgpt:other")
	require.Len(t, wrong, 1)
	require.Contains(t, wrong[0].String(), `must be started as "run:chatgpt:`+conversation+`"`)

	// It is told together with everything else, as long as the target can be read.
	got, problems := Resolve([]byte(`{"target":{"site":"chatgpt","conversation_url":"https://chatgpt.com/c/`+conversation+`"}}`), registry(t), "build-1")
	require.NotEmpty(t, problems)
	require.Len(t, got.idProblems("x"), 1)
}

func TestAnOwnProfileIsUsed(t *testing.T) {
	dir := t.TempDir()
	profile := "site: lab\nextends: chatgpt\nversion: 1\norigins: [http://127.0.0.1:4711]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lab.yaml"), []byte(profile), 0o600))
	own, err := sites.Load(dir)
	require.NoError(t, err)
	got, problems := Resolve(start(`{"site":"lab","browser":"demo","conversation_url":"http://127.0.0.1:4711/c/`+conversation+`"}`), own, "build-1")
	require.Empty(t, problems)
	require.Equal(t, "run:lab:"+conversation, got.WorkflowID)
	require.Equal(t, []string{"http://127.0.0.1:4711"}, got.Site.Origins)
	require.Equal(t, goal.WorkflowID(got.Goal, got.Site), got.WorkflowID)
}
