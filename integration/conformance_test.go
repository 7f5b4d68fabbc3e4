package integration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/activities"
	"steward/activities/browser"
	"steward/config/sites"
	"steward/integration/chatlab"
	"steward/workflows"
	"steward/workflows/run/policy"
	"steward/workflows/run/prompt"
	"steward/workflows/run/receipt"
)

// The conformance suite: every site profile has to pass the same tests, in a real browser on the real page. The short form
// leaves out what the other tests of the fixture site prove in another way.

// page is one site under the suite: its profile's name, and the server that records what arrived.
type page struct {
	site string
	*chatlab.Server
}

// everySite runs a test for each site.
func everySite(t *testing.T, test func(*testing.T, *stack, page)) {
	s := start(t)
	all := map[string]*chatlab.Server{"chatlab": s.lab}
	maps.Copy(all, s.pages)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := page{name, all[name]}
			test(t, s, p)
		})
	}
}

// thorough tells that the full suite runs.
func thorough() bool { return os.Getenv("STEWARD_TEST_FULL") != "" }

// login is a browser in this process. The same name is the same browser, until the tests are over.
func (s *stack) login(t *testing.T, name string) *browser.Browser {
	t.Helper()
	opening.Lock()
	defer opening.Unlock()
	if b := s.logins[name]; b != nil {
		return b
	}
	registry, err := sites.Load(s.sitesDir)
	require.NoError(t, err)
	b, err := browser.Open(context.Background(), browser.Options{
		Name: name, Sites: registry, ProfileDir: filepath.Join(s.dir, "logins", name), NoSandbox: true, Arm: accepting{}, Log: quiet(),
	})
	require.NoError(t, err)
	s.logins[name] = b
	s.stop = append(s.stop, func() { _ = b.Close(context.Background()) })
	return b
}

// opening guards stack.logins.
var opening sync.Mutex

// accepting is a server that accepts every heartbeat.
type accepting struct{}

func (accepting) Beat(context.Context, activities.SendProgress) error { return nil }

// chat makes a conversation on a site's page.
func (p page) chat(t *testing.T, browser, scenario string) activities.Conversation {
	t.Helper()
	sc, err := chatlab.ParseScenario([]byte(scenario))
	require.NoError(t, err)
	id, err := p.NewConversation(chatlab.Conversation{Scenario: sc, History: []chatlab.Message{
		{Role: "user", Text: "Hello"}, {Role: "assistant", Text: "Too many requests? Something went wrong? Stopped thinking? No: I only quote."},
	}})
	require.NoError(t, err)
	return activities.Conversation{Site: p.site, Browser: browser, ID: id, URL: p.ConversationURL(id)}
}

var effects atomic.Int64

// newEffect is an effect id that no other test uses: logins are shared, and their ledgers with them.
func newEffect() string { return effectOf(int(1000 + effects.Add(1))) }

const conformanceTask = "t_0123456789ab"

// send is one attempt of an effect with a text between the first line and the lines that receipts echo.
func send(c activities.Conversation, effect, text string) activities.SendInput {
	words := strings.Join([]string{
		"Please go on.", text, "conversation_id: " + c.ID, "task_id: " + conformanceTask, "active_scope: goal:x", prompt.Marker(effect),
	}, "\n")
	return activities.SendInput{
		TaskID: conformanceTask, Conversation: c, EffectID: effect, Generation: 1, Kind: "enrollment", Prompt: words,
	}
}

func observe(c activities.Conversation, effect string) activities.ObserveInput {
	return activities.ObserveInput{
		TaskID: conformanceTask, Conversation: c, EffectID: effect, Until: time.Now().Add(40 * time.Second),
		Want: receipt.Want{ConversationID: c.ID, TaskID: conformanceTask, Scope: "goal:x", EffectID: effect},
	}
}

// exactTexts are what a composer tends to spoil.
func exactTexts() map[string]string {
	line := "A line of some words, with a link http://example.com/path?q=1 and a tab\there.\n"
	texts := map[string]string{
		"paragraphs":   "first\n\nsecond\n\n\nthird\n  indented\n\tafter a tab\ttab\nlast",
		"links":        "see https://example.com/a?b=1&c=2#d and http://localhost:8080/x_y_z, both",
		"spaces":       "one\u00a0two\u00a0\u00a0three \u202ffour   five\n   \nthree spaces above",
		"emoji":        "🔄 👩‍💻 🇯🇵 e\u0301 ✅",
		"right-left":   "עברית and العربية mixed (123)\nمرحبا",
		"fences":       "```go\nfunc main() {\n\tfmt.Println(\"<b>&amp;</b>\")\n}\n```\n<b>bold</b> *stars* \\backslash `tick`\n- a\n1. b\n> c",
		"east asian":   "继续使用此对话\n質問してみましょう",
		"32 kilobytes": strings.TrimSpace(strings.Repeat(line, 32<<10/len(line))),
	}
	if thorough() {
		return texts
	}
	short := []string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if name != "32 kilobytes" {
			short = append(short, texts[name])
		}
	}
	return map[string]string{"all short ones": strings.Join(short, "\n\n"), "32 kilobytes": texts["32 kilobytes"]}
}

func TestConformanceTextsArriveExactly(t *testing.T) {
	everySite(t, func(t *testing.T, s *stack, p page) {
		b := s.login(t, p.site)
		texts := exactTexts()
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			c := p.chat(t, p.site, `otherwise: [{text: ok}]`)
			in := send(c, newEffect(), texts[name])
			r, err := b.Send(t.Context(), in)
			require.NoError(t, err)
			require.Equal(t, activities.SendCommitted, r.Outcome, "%s: %+v", name, r)
			require.Empty(t, r.Code, name)
			require.True(t, r.Armed)
			got := p.Record(c.ID)
			require.Len(t, got, 1, name)
			require.Equal(t, in.Prompt, got[0].Text, name)
			require.Equal(t, "click", got[0].Via, name)
		}
	})
}

// A turn that pauses, with the page at work meanwhile, is read to its end; the message is found again after a reload.
func TestConformanceTurnsAreReadToTheirEnd(t *testing.T) {
	everySite(t, func(t *testing.T, s *stack, p page) {
		b := s.login(t, p.site)
		c := p.chat(t, p.site, `
page: {long_poll: true}
replies:
  - [{think: 200ms}, {text: "Working. Something went wrong, says the log."}, {gate: go},
     {more: "\n\n{{receipt \"CONTINUE\" \"first\" \"more to do\"}}"}]
  - [{text: "Half an answer"}, {banner: analysis_paused}]`)
		first, second := newEffect(), newEffect()
		r, err := b.Send(t.Context(), send(c, first, "one"))
		require.NoError(t, err)
		require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
		require.NoError(t, p.AwaitGate(t.Context(), c.ID, "go"))
		r, err = b.Send(t.Context(), send(c, second, "two"))
		require.NoError(t, err)
		require.Equal(t, activities.DeferBusy, r.Class, "%+v", r)
		require.Len(t, p.Record(c.ID), 1)

		time.AfterFunc(2*time.Second, func() { _ = p.Release(c.ID, "go") }) // longer than the settle rule
		turn, err := b.Observe(t.Context(), observe(c, first))
		require.NoError(t, err)
		require.Equal(t, activities.TurnSettled, turn.Turn, "%+v", turn)
		require.NotNil(t, turn.Reading.Receipt, "%+v", turn.Reading)
		require.Equal(t, receipt.Continue, turn.Reading.Receipt.Action)

		probe, err := b.Probe(t.Context(), activities.ProbeInput{ID: "probe", Level: activities.ProbePage, Conversation: c})
		require.NoError(t, err)
		require.True(t, probe.Passed, "every rule of the profile matches: %+v", probe)
		for effect, there := range map[string]bool{first: true, second: false} {
			seen, err := b.Reconcile(t.Context(), activities.ReconcileInput{Conversation: c, EffectID: effect})
			require.NoError(t, err)
			require.True(t, seen.Readable, "%+v", seen)
			require.Equal(t, there, seen.Marker, effect)
		}
		in := send(c, second, "two")
		in.Fence = &activities.Fence{SourceEffect: first, AnswerDigest: turn.AnswerDigest}
		r, err = b.Send(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
		turn, err = b.Observe(t.Context(), observe(c, second))
		require.NoError(t, err)
		require.Equal(t, activities.TurnFailed, turn.Turn, "%+v", turn)
		require.Contains(t, []string{"delivery_unavailable", "turn_error"}, turn.Class, "after a reload deep-chat has its own words for any failure")
		require.Len(t, p.Record(c.ID), 2)
	})
}

// pageStates are conditions of a page and what a send says of them.
var pageStates = []struct {
	page    string
	outcome activities.SendOutcome
	class   string
	short   bool
}{
	{`{state: {kind: login}}`, activities.SendUserAction, "login", true},
	{`{language: zh, state: {kind: rate_limit, where: dialog}}`, activities.SendDeferred, activities.DeferRateLimited, true},
	{`{language: de, state: {kind: conversation_limit}}`, activities.SendUserAction, "conversation_limit", false},
	{`{language: ja, state: {kind: disconnected}}`, activities.SendDeferred, activities.DeferPageNotReady, false},
	{`{language: de, state: {kind: usage_limit, for: 1h}}`, activities.SendDeferred, activities.DeferRateLimited, false},
	{`{state: {kind: error}}`, activities.SendDeferred, activities.DeferPageNotReady, false},
	{`{draft: "a person's own words"}`, activities.SendDeferred, activities.DeferForeignDraft, true},
}

func TestConformancePageStatesSendNothing(t *testing.T) {
	everySite(t, func(t *testing.T, s *stack, p page) {
		for i, state := range pageStates {
			if !state.short && !thorough() {
				continue
			}
			name := p.site
			if state.class == activities.DeferRateLimited {
				name = fmt.Sprint(p.site, i) // a limit makes the whole login rest
			}
			b := s.login(t, name)
			c := p.chat(t, name, "page: "+state.page+"\notherwise: [{text: ok}]")
			for range 2 {
				r, err := b.Send(t.Context(), send(c, newEffect(), "words"))
				require.NoError(t, err)
				if r.Class == activities.DeferCooldown {
					break
				}
				require.Equal(t, state.outcome, r.Outcome, "%s: %+v", state.page, r)
				require.Equal(t, state.class, r.Class, state.page)
				require.False(t, r.Armed)
			}
			require.Empty(t, p.Record(c.ID), state.page)
		}
		b := s.login(t, p.site)
		c := p.chat(t, p.site, `otherwise: [{text: ok}]`)
		c.ID = "00000000-0000-4000-8000-000000000000"
		c.URL = p.URL() + "/c/" + c.ID
		r, err := b.Send(t.Context(), send(c, newEffect(), "words"))
		require.NoError(t, err)
		require.Equal(t, activities.SendMissing, r.Outcome, "%+v", r)
	})
}

// A message that the site refuses is never taken for a sent one, also on a page that shows it at once.
func TestConformanceARefusedMessageIsNotTakenForASentOne(t *testing.T) {
	everySite(t, func(t *testing.T, s *stack, p page) {
		if !thorough() && p.site != "deep-chat" {
			t.Skip("the short suite asks the page that shows messages at once")
		}
		b := s.login(t, p.site)
		c := p.chat(t, p.site, `replies: [{delivery: {status: 500}}]`)
		effect := newEffect()
		r, err := b.Send(t.Context(), send(c, effect, "words"))
		require.NoError(t, err)
		require.Equal(t, activities.SendDoubtful, r.Outcome, "%+v", r)
		seen, err := b.Reconcile(t.Context(), activities.ReconcileInput{Conversation: c, EffectID: effect})
		require.NoError(t, err)
		require.True(t, seen.Readable && !seen.Marker, "%+v", seen)
		require.Empty(t, p.Record(c.ID))
	})
}

func TestConformanceANewConversationIsBoundOnce(t *testing.T) {
	everySite(t, func(t *testing.T, s *stack, p page) {
		b := s.login(t, p.site)
		c := activities.Conversation{Site: p.site, Browser: p.site, NewKey: "k"}
		in := send(c, newEffect(), "words of "+t.Name())
		in.Kind = "bootstrap"
		r, err := b.Send(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
		require.NotEmpty(t, r.ConversationID)
		require.Len(t, p.Record(r.ConversationID), 1)
		again, err := b.Send(t.Context(), in)
		require.NoError(t, err)
		require.True(t, again.AlreadyThere || again.Outcome == activities.SendDoubtful, "%+v", again)
		arrived := 0
		for _, one := range p.Records() {
			if one.EffectID == in.EffectID && one.Text == in.Prompt {
				arrived++
			}
		}
		require.Equal(t, 1, arrived)
	})
}

func TestConformanceStopIsPressedOnce(t *testing.T) {
	everySite(t, func(t *testing.T, s *stack, p page) {
		if !thorough() && p.site == "chatlab" {
			t.Skip("the fixture site's own tests press Stop")
		}
		b := s.login(t, p.site)
		c := p.chat(t, p.site, `otherwise: [{text: begun}, {gate: never}]`)
		effect := newEffect()
		r, err := b.Send(t.Context(), send(c, effect, "words"))
		require.NoError(t, err)
		require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
		require.NoError(t, p.AwaitGate(t.Context(), c.ID, "never"))
		out, err := b.Interrupt(t.Context(), activities.InterruptInput{ID: newEffect(), EffectID: effect, Conversation: c})
		require.NoError(t, err)
		require.True(t, out.Pressed && out.Stopped, "%+v", out)
		stops := 0
		for _, e := range p.Events() {
			if e.ConversationID == c.ID && e.Kind == "stop" {
				stops++
			}
		}
		require.Equal(t, 1, stops)
	})
}

const threeGreenTurns = `
replies:
  - - text: '{{receipt "CONTINUE" "one" "two are left"}}'
  - - text: '{{receipt "CONTINUE" "two" "one is left"}}'
  - - text: '{{receipt "DONE" "all green" "nothing is left"}}'
`

// A goal of three turns is reached on every site, also when the worker is killed before it arms or after the click of the
// first message; each prompt arrives exactly once.
func TestConformanceThreeTurnsThroughKillWindows(t *testing.T) {
	points := []string{"before_arm", "clicked"}
	if thorough() {
		points = []string{"", "before_arm", "armed", "clicked"}
	}
	everySite(t, func(t *testing.T, s *stack, p page) {
		if !thorough() && p.site == "chatlab" {
			t.Skip("the short suite kills this site's workers in the tests of faults")
		}
		for _, point := range points {
			t.Run(cmp.Or(point, "undisturbed"), func(t *testing.T) {
				name := "conformance-" + p.site + "-" + cmp.Or(point, "none")
				c := p.chat(t, name, threeGreenTurns)
				worker := s.browserWorker(t, name, fault{point, syscall.SIGKILL})
				run := s.begin(t, p, c)
				if point != "" {
					worker.hit(t)
					_ = worker.cmd.Wait()
					worker.start(t)
				}
				if point == "armed" {
					state := s.until(t, run.GetID(), "blocked by an unknown outcome", func(st policy.State) bool {
						return st.Blocker != nil && st.Blocker.Class == policy.BlockedUnknown
					})
					require.Equal(t, policy.EffectUnknown, state.Effect.State)
					require.Empty(t, p.Record(c.ID))
					return
				}
				require.Equal(t, policy.GoalComplete, s.result(t, run).Status)
				got := p.Record(c.ID)
				require.Len(t, got, 3)
				seen := map[string]int{}
				for _, r := range got {
					seen[r.EffectID]++
					require.Equal(t, "click", r.Via)
				}
				require.Len(t, seen, 3, "each effect arrives once: %v", seen)
			})
		}
		require.Empty(t, p.Violations())
	})
}

// begin starts a run of a conversation on a site's page.
func (s *stack) begin(t *testing.T, p page, c activities.Conversation) client.WorkflowRun {
	t.Helper()
	in := s.input(c.ID, c.Browser, func(in map[string]any) {
		in["target"] = map[string]any{"site": p.site, "browser": c.Browser, "conversation_url": c.URL}
	})
	run, err := s.client.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{
		ID: fmt.Sprintf("run:%s:%s", p.site, c.ID), TaskQueue: workflows.QueueRun,
	}, workflows.TypeWorkflowRun, in)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.client.TerminateWorkflow(ctx, run.GetID(), "", "the test is over")
	})
	return run
}
