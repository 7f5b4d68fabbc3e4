package goal

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"steward/workflows/machine/strict"
)

// SiteFacts is what the run worker resolved once, at start, with its own site profiles. It becomes part of the state, so
// that workflow code never reads a profile.
type SiteFacts struct {
	// Site is the name of the profile that was used.
	Site string `json:"site"`
	// ConversationID is the canonical id, in lower case; empty for a conversation that does not exist yet.
	ConversationID string `json:"conversation_id,omitempty"`
	// ConversationURL is the canonical address; empty for a conversation that does not exist yet.
	ConversationURL string `json:"conversation_url,omitempty"`
	// PageURL is where a new conversation starts; empty for an existing one.
	PageURL string `json:"page_url,omitempty"`
	// Origins are the origins that the conversation may be on.
	Origins []string `json:"origins,omitempty"`
	// MinInterval is the site's floor between turns.
	MinInterval Duration `json:"min_interval"`
	// Host is the host of the worker that resolved the target: the default for the checks.
	Host string `json:"host,omitempty"`
	// ProbeMessage allows probes that send one fixed line in a throwaway conversation.
	ProbeMessage bool `json:"probe_message,omitempty"`
	// Pace is the site's own pace of trying again; zero values mean the defaults.
	Pace Pace `json:"pace,omitzero"`
}

// WorkflowID is the id that the run of a goal must have: run:<site>:<conversation id>, or run:<site>:new:<key>.
func WorkflowID(g Goal, facts SiteFacts) string {
	if facts.ConversationID == "" && g.Target.New != nil {
		return "run:" + facts.Site + ":new:" + g.Target.New.Key
	}
	return "run:" + facts.Site + ":" + strings.ToLower(facts.ConversationID)
}

// Normalize fills every default in a valid goal: no optional number, duration or exists is nil after it. Normalizing twice
// is the same as once, and a normalized goal is valid input. The goal it is called on keeps its value.
//
//workflowcheck:ignore
func (g Goal) Normalize(site SiteFacts) Goal {
	g = g.clone()
	if g.Outcome == "" {
		g.Outcome = firstSentence(g.Objective)
	}
	if g.Target.Browser == "" {
		g.Target.Browser = g.Target.Site
	}
	if g.Scope == "" {
		g.Scope = defaultScope(g, site)
	}
	if g.Completion.Host == "" {
		g.Completion.Host = site.Host
	}
	if g.Continuation.MinInterval == nil {
		g.Continuation.MinInterval = &site.MinInterval
	}
	if len(g.Continuation.Receipts) == 0 {
		g.Continuation.Receipts = []string{"block", "compact"}
	}
	if g.UserBlocker.Allowed == nil {
		g.UserBlocker.Allowed = []string{
			"authorization", "consent", "legal", "payment", "credentials", "physical_action", "decision",
		}
	}
	if g.Adopt != nil && g.Adopt.Scopes == "" {
		g.Adopt.Scopes = "goal:.*"
	}
	strict.Defaults(&g)
	return g
}

// Registers tells whether a scope that an assistant proposes may become the run's own.
func (g Goal) Registers(scope string) bool {
	if scope == g.Scope {
		return true
	}
	if g.Adopt == nil || utf8.RuneCountInString(scope) > maxScope || forms["scope"](scope) != "" {
		return false
	}
	whole, err := regexp.Compile("^(?:" + g.Adopt.Scopes + ")$")
	return err == nil && whole.MatchString(scope)
}

const maxScope = 512 // characters

// clone copies a goal with everything it points to.
func (g Goal) clone() Goal {
	data, err := json.Marshal(g)
	if err != nil {
		panic(fmt.Sprintf("goal: a goal cannot be written as JSON: %v", err))
	}
	var copied Goal
	if err := json.Unmarshal(data, &copied); err != nil {
		panic(fmt.Sprintf("goal: a goal cannot be read from its own JSON: %v", err))
	}
	return copied
}

func defaultScope(g Goal, site SiteFacts) string {
	if g.Target.New != nil {
		return "goal:" + g.Target.New.Key
	}
	id := []rune(strings.ToLower(site.ConversationID))
	return "goal:" + string(id[:min(8, len(id))])
}

const maxOutcome = 200 // characters

// firstSentence is the first sentence or paragraph of a text in one line, cut at the length of an outcome.
func firstSentence(text string) string {
	paragraph, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(text), "\t", " "), "\n\n")
	line := strings.Join(strings.Fields(paragraph), " ")
	for i, r := range line {
		after := line[i+utf8.RuneLen(r):]
		if strings.ContainsRune("。！？", r) || strings.ContainsRune(".!?", r) && endsSentence(after) {
			line = line[:len(line)-len(after)]
			break
		}
	}
	if runes := []rune(line); len(runes) > maxOutcome {
		line = strings.TrimSpace(string(runes[:maxOutcome-1])) + "…"
	}
	return line
}

// endsSentence tells whether a full stop before the text ends a sentence: a small letter goes on, as after "e.g.".
func endsSentence(after string) bool {
	next := strings.TrimPrefix(after, " ")
	r, _ := utf8.DecodeRuneInString(next)
	return next != after && !unicode.IsLower(r)
}
