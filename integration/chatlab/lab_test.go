package chatlab

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func start(t *testing.T, options Options) *Server {
	t.Helper()
	s, err := Start(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// call makes one request and decodes the answer into a map or list.
func call(t *testing.T, s *Server, method, path, body string) (int, any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, bytes.NewBufferString(body))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	var value any
	if json.Unmarshal(data, &value) != nil {
		return response.StatusCode, string(data)
	}
	return response.StatusCode, value
}

func create(t *testing.T, s *Server, body string) string {
	t.Helper()
	status, value := call(t, s, "POST", "/lab/conversations", body)
	require.Equal(t, 200, status, "%v", value)
	return value.(map[string]any)["id"].(string)
}

func post(t *testing.T, s *Server, m posted) (int, any) {
	t.Helper()
	body, err := json.Marshal(m)
	require.NoError(t, err)
	return call(t, s, "POST", "/backend-api/conversation", string(body))
}

func TestControlAPI(t *testing.T) {
	s := start(t, Options{})
	id := create(t, s, `{"title": "Orders", "project": "g-p-0123456789abcdef-orders", "history": [{"role": "user", "text": "hi"}],
		"scenario": {"replies": [[{"text": "Hello {{.Number}}"}, {"gate": "more"}, {"more": "!"}]]}}`)

	status, _ := post(t, s, posted{ConversationID: id, MessageID: "m1", Text: "go\n[steward fx_0123456789abcdef]", Via: viaClick})
	require.Equal(t, 200, status)
	status, value := call(t, s, "GET", "/lab/conversations/"+id+"/records?min=1&wait=5s", "")
	require.Equal(t, 200, status)
	record := value.([]any)[0].(map[string]any)
	require.Equal(t, "click", record["via"])
	require.Equal(t, "fx_0123456789abcdef", record["effect_id"])

	status, _ = call(t, s, "GET", "/lab/conversations/"+id+"/gates/more?wait=5s", "")
	require.Equal(t, 200, status)
	status, _ = call(t, s, "POST", "/lab/conversations/"+id+"/gates/more", "")
	require.Equal(t, 200, status)
	require.Equal(t, "Hello 1!", settled(t, s, id))

	status, _ = call(t, s, "POST", "/lab/conversations/"+id+"/scenario", "otherwise:\n- text: second script\n")
	require.Equal(t, 200, status)
	status, _ = call(t, s, "POST", "/lab/conversations/"+id+"/say", `{"text": "by hand 👋"}`)
	require.Equal(t, 200, status)
	require.Equal(t, "second script", settled(t, s, id))

	_, value = call(t, s, "GET", "/lab/conversations", "")
	listed := value.([]any)[0].(map[string]any)
	require.Equal(t, s.URL()+"/g/g-p-0123456789abcdef-orders/c/"+id, listed["url"])
	require.EqualValues(t, 2, listed["received"])
	_, value = call(t, s, "GET", "/lab/violations", "")
	require.Empty(t, value)
}

// settled waits until the last turn is a finished answer, and returns its text.
func settled(t *testing.T, s *Server, id string) string {
	t.Helper()
	var last TurnText
	require.Eventually(t, func() bool {
		turns, err := s.Transcript(id)
		require.NoError(t, err)
		last = turns[len(turns)-1]
		return last.Role == roleAssistant && last.Done
	}, 10*time.Second, 5*time.Millisecond)
	return last.Text
}

func TestControlAPIRefusals(t *testing.T) {
	s := start(t, Options{Dir: t.TempDir()})
	id := create(t, s, `{}`)
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/lab/conversations", `{"scenario": {"replies": [[{"txt": "a"}]]}}`, 400, "unknown step"},
		{"POST", "/lab/conversations", `{"scenario": "replies:\n- - txt: a"}`, 400, "line 2: unknown step"},
		{"POST", "/lab/conversations", `{"id": "X"}`, 400, "want a lower case uuid"},
		{"POST", "/lab/conversations", `{"id": "` + id + `"}`, 400, "exists"},
		{"POST", "/lab/conversations", `{"project": "orders"}`, 400, "g-p-<hex>-<slug>"},
		{"POST", "/lab/conversations", `{"name": "orders"}`, 400, "unknown key"},
		{"POST", "/lab/conversations", `{"scenario": {"otherwise": [{"run": ["true"]}]}}`, 400, "not accepted over HTTP"},
		{"POST", "/lab/conversations/" + id + "/scenario", "otherwise: [{write_file: {path: a, content: b}}]", 400, "not accepted over HTTP"},
		{"POST", "/lab/conversations/" + id + "/regenerate", "[{run: ['true']}]", 400, "not accepted over HTTP"},
		{"POST", "/lab/conversations/nope/scenario", "otherwise: [drop]", 404, "no conversation nope"},
		{"POST", "/lab/conversations/" + id + "/regenerate", "[{text: a}]", 400, "could be answered again"},
		{"POST", "/lab/conversations/" + id + "/draft", `{"txt": "a"}`, 400, "unknown field"},
		{"POST", "/lab/state", "kind: sleepy", 400, "state is \"sleepy\""},
		{"GET", "/lab/records?min=1&wait=10ms", "", 504, "0 of 1 messages"},
		{"GET", "/lab/conversations/" + id + "/gates/x?wait=10ms", "", 504, "not at gate"},
		{"GET", "/lab/conversations/nope/records", "", 404, "no conversation nope"},
		{"GET", "/c/" + id + "?" /* a page */, "", 200, "boot"},
	} {
		status, value := call(t, s, c.method, c.path, c.body)
		require.Equal(t, c.status, status, "%s %s: %v", c.path, c.body, value)
		if object, ok := value.(map[string]any); ok {
			value = object["error"]
		}
		require.Contains(t, value, c.want)
	}
}

func TestForeignHostAndOriginAreRefused(t *testing.T) {
	s := start(t, Options{})
	for header, value := range map[string]string{"Host": "evil.example:80", "Origin": "http://evil.example"} {
		request, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/lab/records", nil)
		require.NoError(t, err)
		request.Header.Set(header, value)
		if header == "Host" {
			request.Host = value
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusMisdirectedRequest, response.StatusCode, header)
	}
	_, err := Start(Options{Addr: "0.0.0.0:0"})
	require.ErrorContains(t, err, "loopback")
}

func TestMessagesAreCountedOnce(t *testing.T) {
	s := start(t, Options{})
	id := create(t, s, `{"scenario": "replies:\n- {delivery: {status: 429}}\n- [{text: one}]\n- {delivery: {truncate: 3}, steps: [drop]}"}`)
	m := posted{ConversationID: id, MessageID: "m1", Text: "héllo", Via: viaClick}
	status, _ := post(t, s, m)
	require.Equal(t, 429, status)
	require.Empty(t, s.Record(id))
	for range 2 { // the second is the page's own retry of the same message
		status, _ = post(t, s, m)
		require.Equal(t, 200, status)
	}
	require.Equal(t, "one", settled(t, s, id))
	m.MessageID, m.Via = "m2", "enter"
	_, _ = post(t, s, m)
	m.MessageID, m.Via = "m3", viaClick
	_, _ = post(t, s, m)
	record := s.Record(id)
	require.Len(t, record, 3)
	require.Equal(t, "hél", record[1].Shown)
	require.Equal(t, "héllo", record[1].Text)
	require.Equal(t, []string{
		id + ": submitted by enter instead of a click on Send",
		id + ": no reply is left for message 3",
	}, s.Violations())
	require.Equal(t, s.Records(), record)
}

func TestCommandsAndHooksRunBeforeTheAnswerEnds(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Options{Dir: dir, Vars: map[string]string{"word": "green"}})
	id, err := s.NewConversation(Conversation{Scenario: MustParse(`
replies:
- - write_file: {path: REPORT.md, content: "all {{.Vars.word}} for {{.EffectID}}"}
  - run: [cp, REPORT.md, "{{.Dir}}/COPY.md"]
  - text: done
- - run: [sh, -c, "echo no luck; exit 3"]
`)})
	require.NoError(t, err)
	var hooked []string
	s.OnMessage(func(r Received) {
		require.NoFileExists(t, dir+"/REPORT.md")
		hooked = append(hooked, r.Text)
	})
	require.NoError(t, s.Say(id, "go [steward fx_0123456789abcdef]"))
	require.Equal(t, "done", settled(t, s, id))
	require.Equal(t, []string{"go [steward fx_0123456789abcdef]"}, hooked)
	data, err := os.ReadFile(dir + "/COPY.md")
	require.NoError(t, err)
	require.Equal(t, "all green for fx_0123456789abcdef", string(data))

	require.NoError(t, os.Remove(dir+"/REPORT.md"))
	require.NoError(t, s.Say(id, "again"))
	require.Empty(t, settled(t, s, id))
	require.Len(t, s.Violations(), 1)
	require.Contains(t, s.Violations()[0], `step "run" of line 6 failed: run sh -c echo no luck; exit 3: exit status 3: no luck`)

	_, err = start(t, Options{}).NewConversation(Conversation{Scenario: MustParse("otherwise: [{run: ['true']}]")})
	require.ErrorContains(t, err, "need a folder")
}

func TestAPersonAtTheChat(t *testing.T) {
	s := start(t, Options{})
	id := create(t, s, `{"scenario": {"otherwise": [{"text": "answer to {{.Text}}"}]}}`)
	require.NoError(t, s.Say(id, "one"))
	require.Equal(t, "answer to one", settled(t, s, id))
	before, err := s.Transcript(id)
	require.NoError(t, err)
	require.NoError(t, s.Regenerate(id, MustParse("otherwise: [{text: another}]").Otherwise))
	require.Equal(t, "another", settled(t, s, id))
	after, err := s.Transcript(id)
	require.NoError(t, err)
	require.Equal(t, before[0], after[0])
	require.Len(t, after, 2)
	require.NotEqual(t, before[1].ID, after[1].ID)
	require.NoError(t, s.Edit(id, "two"))
	require.Equal(t, "answer to two", settled(t, s, id))
	require.Len(t, s.Record(id), 2)
}

func TestStatesEnd(t *testing.T) {
	zero, two := 0, 2
	var a activeState
	a.begin(State{Kind: "login", Loads: &zero}, 0)
	require.Equal(t, "login", a.current().Kind)
	require.Empty(t, a.load().Kind)
	a.begin(State{Kind: "challenge", Loads: &two}, 0)
	require.Equal(t, "challenge", a.load().Kind)
	require.Equal(t, "challenge", a.load().Kind)
	require.Empty(t, a.load().Kind)
	a.begin(State{Kind: "usage_limit"}, time.Nanosecond)
	require.Eventually(t, func() bool { return a.current().Kind == "" }, time.Second, time.Millisecond)

	s := start(t, Options{})
	id := create(t, s, `{"scenario": {"otherwise": ["drop"]}}`)
	require.NoError(t, s.SetState("", State{Kind: "rate_limit"}))
	status, _ := post(t, s, posted{ConversationID: id, MessageID: "m1", Text: "a", Via: viaClick})
	require.Equal(t, 429, status)
	require.NoError(t, s.SetState("", State{}))
	status, _ = post(t, s, posted{ConversationID: id, MessageID: "m1", Text: "a", Via: viaClick})
	require.Equal(t, 200, status)
}

func TestCloseEndsScriptsThatWait(t *testing.T) {
	s, err := Start(Options{})
	require.NoError(t, err)
	id, err := s.NewConversation(Conversation{Scenario: MustParse("otherwise: [{text: a}, {gate: never}, {text: b}]")})
	require.NoError(t, err)
	require.NoError(t, s.Say(id, "go"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.NoError(t, s.AwaitGate(ctx, id, "never"))
	require.NoError(t, s.Close())
	require.Empty(t, s.Violations())
}

// Every shipped scenario plays to its end: no step fails and no message is left without its reply.
func TestShippedScenariosPlay(t *testing.T) {
	for _, name := range ScenarioNames() {
		t.Run(name, func(t *testing.T) {
			s := start(t, Options{Dir: t.TempDir(), Speed: 1000})
			sc, err := LoadScenario(name)
			require.NoError(t, err)
			id, err := s.NewConversation(Conversation{Scenario: sc})
			require.NoError(t, err)
			for range max(1, len(sc.Replies)) {
				require.NoError(t, s.SetState(id, State{}))
				_ = s.Say(id, "go on [steward fx_0123456789abcdef]") // the scenario may refuse it
				require.Eventually(t, func() bool {
					over := false
					require.NoError(t, s.with(id, func(c *chat) {
						c.release(continueGate)
						over = c.playing == nil || c.playing.over()
					}))
					return over
				}, 10*time.Second, time.Millisecond)
			}
			require.Empty(t, s.Violations())
		})
	}
}
