package sites

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func chatgpt(t *testing.T) *Site {
	t.Helper()
	reg, err := Load("")
	require.NoError(t, err)
	site, err := reg.Site("chatgpt")
	require.NoError(t, err)
	return site
}

// dirOf writes profiles into a folder.
func dirOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestAnIDMayTellWhenItsConversationWasCreated(t *testing.T) {
	registry, err := Load("")
	require.NoError(t, err)
	site, err := registry.Site("chatgpt")
	require.NoError(t, err)
	now := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	for id, want := range map[string]time.Time{
		"678a8e75-fe18-8003-a491-6a0f652c8148": time.Date(2025, 1, 17, 17, 8, 5, 0, time.UTC),
		"f283136e-f417-46d4-9cde-34f4360af94b": {}, // of version 4: random
		"f283136e-f417-86d4-9cde-34f4360af94b": {}, // in the future
		"01234567-f417-86d4-9cde-34f4360af94b": {}, // before there were any
		"orders":                               {},
	} {
		require.Equal(t, want, site.CreatedAt(id, now), id)
	}
}

func TestEmbeddedProfilesAreValid(t *testing.T) {
	site := chatgpt(t)
	require.Len(t, site.Digest(), 64)
	require.Equal(t, site.Digest(), chatgpt(t).Digest(), "the digest depends on the content alone")
	require.True(t, site.Headed)
	require.Equal(t, 5*time.Second, site.Timings.SendGap)
}

func TestAFolderThatIsMissingAddsNothing(t *testing.T) {
	reg, err := Load(filepath.Join(t.TempDir(), "none"))
	require.NoError(t, err)
	require.Equal(t, []string{"assistant-ui", "chatgpt", "deep-chat"}, reg.Names())
	_, err = reg.Site("nowhere")
	require.ErrorContains(t, err, "chatgpt")
}

func TestAProfileExtendsAnother(t *testing.T) {
	reg, err := Load(dirOf(t, map[string]string{
		"lab.yaml":   "site: lab\nextends: chatgpt\norigins: [http://127.0.0.1:8080]\ntimings: {look: 10ms}\n",
		"child.yaml": "site: child\nextends: lab\nheaded: false\n",
		"README.md":  "not a profile",
	}))
	require.NoError(t, err)
	require.Equal(t, []string{"assistant-ui", "chatgpt", "child", "deep-chat", "lab"}, reg.Names())
	base, lab, child := chatgpt(t), mustSite(t, reg, "lab"), mustSite(t, reg, "child")
	require.Equal(t, []string{"http://127.0.0.1:8080"}, lab.Origins)
	require.Equal(t, 10*time.Millisecond, lab.Timings.Look)
	require.Equal(t, base.Timings.Commit, lab.Timings.Commit)
	require.Equal(t, base.Page, lab.Page)
	require.Equal(t, lab.Origins, child.Origins)
	require.False(t, child.Headed)
	require.NotEqual(t, base.Digest(), lab.Digest())
}

func mustSite(t *testing.T, reg *Registry, name string) *Site {
	t.Helper()
	site, err := reg.Site(name)
	require.NoError(t, err)
	return site
}

func TestAnOverrideMayExtendTheProfileItReplaces(t *testing.T) {
	reg, err := Load(dirOf(t, map[string]string{
		"mine.yaml": "site: chatgpt\nextends: chatgpt\nversion: 2\npage: {send: ['button.new-send']}\n",
	}))
	require.NoError(t, err)
	site := mustSite(t, reg, "chatgpt")
	require.Equal(t, 2, site.Version)
	require.Equal(t, []string{"button.new-send"}, site.Page.Send, "lists are replaced as a whole")
	require.Equal(t, chatgpt(t).Page.Stop, site.Page.Stop)
}

func TestABadProfileIsRefusedWithFileLineAndReason(t *testing.T) {
	const lab = "site: lab\nextends: chatgpt\n"
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":       {lab + "selectors: {}\n", "bad.yaml:3: field selectors not found"},
		"unknown inner key": {lab + "page:\n  sent: [a]\n", "bad.yaml:4: field sent not found"},
		"duplicate key":     {lab + "version: 1\nversion: 2\n", "bad.yaml:4: mapping key \"version\" already defined"},
		"wrong type":        {lab + "version: many\n", "bad.yaml:3: cannot unmarshal"},
		"no duration":       {lab + "timings:\n  look: fast\n", "bad.yaml:4:"},
		"bad pattern":       {lab + "urls:\n  conversation:\n    - '^/c/(?P<id>[0-9$'\n", "bad.yaml:5: \"^/c/"},
		"open pattern":      {lab + "urls:\n  conversation:\n    - '/c/(?P<id>.*)'\n", "bad.yaml:5: urls.conversation.0: want ^…$"},
		"pattern without id": {
			lab + "urls:\n  conversation: ['^/c/x$']\n", "bad.yaml:4: urls.conversation.0: want a group (?P<id>…)",
		},
		"foreign plain origin": {lab + "origins:\n  - http://example.com\n", "bad.yaml:4: origins.0: want https://"},
		"origin with a path":   {lab + "origins: ['https://example.com/chat']\n", "bad.yaml:3: origins.0: want https://"},
		"bad selector":         {lab + "page:\n  send:\n    - 'button[data-x'\n", "bad.yaml:5: page.send.0: not a CSS selector"},
		"no selector":          {lab + "page: {editor: []}\n", "bad.yaml:3: page.editor: want at least one"},
		"bad kind": {
			lab + "states:\n  - state: odd\n    kind: strange\n    rules: [{select: [a]}]\n", "bad.yaml:5: states.0.kind: want one of",
		},
		"state without rule": {lab + "states:\n  - state: odd\n    kind: limited\n", "bad.yaml:4: states.0.rules: want at least one rule"},
		"ask is missing": {
			lab + "states:\n  - state: odd\n    kind: user_action\n    rules: [{select: [a]}]\n", "states.0.ask: want what the person has to do",
		},
		"negative time":                  {lab + "settle:\n  stable: -1s\n", "bad.yaml:4: settle.stable: want 0s or more"},
		"no site":                        {"version: 1\n", "bad.yaml:1: the key site is missing"},
		"unknown base":                   {"site: lab\nextends: nothing\n", "bad.yaml: extends: no site profile \"nothing\""},
		"itself":                         {"site: lab\nextends: lab\n", "bad.yaml: extends: no site profile \"lab\""},
		"not YAML":                       {"site: [lab\n", "bad.yaml:"},
		"two documents":                  {lab + "---\nsite: other\n", "bad.yaml: want one YAML document"},
		"empty":                          {"", "bad.yaml: EOF"},
		"incomplete":                     {"site: lab\n", "bad.yaml:1: version: want 1 or more"},
		"name":                           {"site: Lab One\nextends: chatgpt\n", "bad.yaml:1: site: want 1 to 40"},
		"probe text":                     {lab + "message_probe: {allowed: true, text: ' '}\n", "bad.yaml:3: message_probe.text: want the line to send"},
		"no sign of the end":             {"site: lab\nextends: deep-chat\npage: {idle: []}\n", "bad.yaml:3: page.finished: want at least one"},
		"roles by class and one missing": {"site: lab\nextends: deep-chat\npage: {assistant: []}\n", "bad.yaml:3: page.assistant: want at least one"},
		"text and select": {
			lab + "states:\n  - state: odd\n    kind: limited\n    rules:\n      - {title: {en: [a]}, text: {en: [b]}}\n",
			"bad.yaml:7: states.0.rules.0.text: text needs select",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(dirOf(t, map[string]string{"bad.yaml": c.text}))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	_, err := Load(dirOf(t, map[string]string{
		"a.yaml": "site: a\nextends: chatgpt\nversion: 0\nfacts: yesterday\n",
		"b.yaml": "site: b\nextends: chatgpt\nlimits: {prompt: 0}\n",
	}))
	for _, want := range []string{"a.yaml:3: version", "a.yaml:4: facts", "b.yaml:3: limits.prompt"} {
		require.ErrorContains(t, err, want)
	}
}

func TestTwoFilesOfOneSiteAndCirclesAreRefused(t *testing.T) {
	_, err := Load(dirOf(t, map[string]string{"a.yaml": "site: lab\nextends: chatgpt\n", "b.yml": "site: lab\nextends: chatgpt\n"}))
	require.ErrorContains(t, err, `site "lab" stands in`)
	_, err = Load(dirOf(t, map[string]string{"a.yaml": "site: a\nextends: b\n", "b.yaml": "site: b\nextends: a\n"}))
	require.ErrorContains(t, err, "goes round in a circle")
	_, err = Load(dirOf(t, map[string]string{"a.yaml": "site: a\n# " + strings.Repeat("x", maxProfile)}))
	require.ErrorContains(t, err, "longer than")
}

func TestAddresses(t *testing.T) {
	site := chatgpt(t)
	const id = "6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e"
	for raw, want := range map[string]Address{
		"https://chatgpt.com/c/" + id:                                 {ID: id, URL: "https://chatgpt.com/c/" + id},
		"https://CHATGPT.com/c/" + strings.ToUpper(id) + "?model=x#y": {ID: id, URL: "https://chatgpt.com/c/" + id},
		"https://chatgpt.com/g/g-p-0a1b-orders/c/" + id: {
			ID: id, Project: "g-p-0a1b", URL: "https://chatgpt.com/g/g-p-0a1b-orders/c/" + id,
		},
		"https://chatgpt.com/g/g-p-0a1b/c/" + id:         {ID: id, Project: "g-p-0a1b", URL: "https://chatgpt.com/g/g-p-0a1b/c/" + id},
		"https://chatgpt.com/c/WEB:0d2f6c1f":             {Provisional: true},
		"https://chatgpt.com/c/WEB%3A0d2f6c1f":           {Provisional: true},
		"https://chatgpt.com/g/g-p-0a1b-orders/c/WEB:12": {Provisional: true},
		"https://chatgpt.com":                            {NewChat: true, URL: "https://chatgpt.com/"},
		"https://chatgpt.com/g/g-p-0a1b-orders/project": {
			NewChat: true, Project: "g-p-0a1b", URL: "https://chatgpt.com/g/g-p-0a1b-orders/project",
		},
		"https://chatgpt.com/c/not-an-id": {},
		"https://chatgpt.com/settings":    {},
	} {
		got, err := site.Address(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, got, raw)
	}
	for _, raw := range []string{
		"http://chatgpt.com/c/" + id, "https://chatgpt.com.example.com/c/" + id, "https://evil.com/https://chatgpt.com/c/" + id,
		"https://user@chatgpt.com/c/" + id, "https://chatgpt.com:8443/c/" + id, "file:///c/" + id, "javascript:alert(1)", "", "://",
	} {
		_, _, err := site.Conversation(raw)
		require.Error(t, err, raw)
		require.False(t, site.Owns(raw), raw)
	}
	_, _, err := site.Conversation("https://chatgpt.com/")
	require.ErrorContains(t, err, "not the address of a conversation")
	_, err = site.NewChat("https://chatgpt.com/c/" + id)
	require.Error(t, err)
	start, err := site.NewChat("")
	require.NoError(t, err)
	require.Equal(t, "https://chatgpt.com/", start)
}

func TestTheEndOfALimit(t *testing.T) {
	var limit *State
	for i, s := range chatgpt(t).States {
		if s.Name == "plan_limit" {
			limit = &chatgpt(t).States[i]
		}
	}
	zone := time.FixedZone("here", 2*60*60)
	now := time.Date(2026, 11, 30, 14, 20, 0, 0, zone)
	clock := func(day, hour, minute int) time.Time { return time.Date(2026, 11, day, hour, minute, 0, 0, zone) }
	for text, want := range map[string]time.Time{
		"You have reached your limit. It resets at 3:45\u202fPM.":      clock(30, 15, 45),
		"Usage limit reached. Try again after 9:05 AM.":                time.Date(2026, 12, 1, 9, 5, 0, 0, zone),
		"It resets at 12:10 AM":                                        time.Date(2026, 12, 1, 0, 10, 0, 0, zone),
		"Du hast dein Limit erreicht. Es wird um 15:45 zurückgesetzt.": clock(30, 15, 45),
		"您已达到使用上限。将于 15:45 重置。":                                        clock(30, 15, 45),
		"上限に達しました。15:45 にリセットされます。":                                    clock(30, 15, 45),
		"Try again in 2 hours":                                         now.Add(2 * time.Hour),
		"Please wait for 5 minutes":                                    now.Add(5 * time.Minute),
		"You have reached your limit.":                                 {},
		"It resets at 99:99":                                           {},
	} {
		require.True(t, want.Equal(limit.End(text, now)), "%s: got %s, want %s", text, limit.End(text, now), want)
	}
}
