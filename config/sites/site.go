// Package sites holds what is known of each chat site: a versioned YAML asset per site with selectors, page states, URL
// rules and timings. A profile is data. The code that uses it knows no selector, no address and no visible text of a site.
package sites

import (
	"fmt"
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"
)

// Site is one resolved profile. It is shared and never changed after Load.
type Site struct {
	// Name is the key by which runs name the site.
	Name string `yaml:"site" json:"site"`
	// Extends names the profile whose missing parts are taken over. An override of an embedded profile may extend it by
	// its own name.
	Extends string `yaml:"extends" json:"-"`
	// Version counts the revisions of the profile; Facts is the day (2006-01-02) its facts were last checked.
	Version int    `yaml:"version" json:"version"`
	Facts   string `yaml:"facts" json:"facts"`
	// Origins are the only origins that are ever navigated to. The first one is the canonical one.
	Origins []string `yaml:"origins" json:"origins"`
	// Headed runs the browser with a window.
	Headed bool `yaml:"headed" json:"headed"`
	// MessageProbe allows probes that send one fixed line in a throwaway conversation.
	MessageProbe MessageProbe `yaml:"message_probe" json:"message_probe"`
	URLs         URLs         `yaml:"urls" json:"urls"`
	Page         Page         `yaml:"page" json:"page"`
	// States are judged in their order; the first one that fits is the page's state.
	States  []State `yaml:"states" json:"states"`
	Settle  Settle  `yaml:"settle" json:"settle"`
	Timings Timings `yaml:"timings" json:"timings"`
	Limits  Limits  `yaml:"limits" json:"limits"`

	digest string
}

// Digest is the sha256, in hex, of the resolved profile's canonical content.
func (s *Site) Digest() string { return s.digest }

// MessageProbe is the opt-in for probes of level message.
type MessageProbe struct {
	Allowed bool   `yaml:"allowed" json:"allowed"`
	Text    string `yaml:"text" json:"text"`
}

// URLs are the rules for paths on the site's origins. Patterns match the whole path.
type URLs struct {
	// Start is the path of an empty new chat.
	Start string `yaml:"start" json:"start"`
	// Conversation patterns have a group "id", and may have a group "project".
	Conversation []Pattern `yaml:"conversation" json:"conversation"`
	// Provisional addresses belong to a conversation that has no durable id yet.
	Provisional []Pattern `yaml:"provisional" json:"provisional"`
	// NewChat addresses are pages where the first message creates a conversation; a group "project" names its project.
	NewChat []Pattern `yaml:"new_chat" json:"new_chat"`
	// Created finds in a conversation's id when it was created, by a group "unix_hex": seconds since 1970 in hex. Absent where
	// ids do not tell.
	Created []Pattern `yaml:"created" json:"created,omitempty"`
}

// Page is what the scripts inside the page look for. Lists of selectors are ordered fallbacks: the first one that matches
// something visible counts.
type Page struct {
	// Shadow are hosts of open shadow roots that hold parts of the chat; every other selector looks into these too.
	Shadow []string `yaml:"shadow" json:"shadow,omitempty"`
	// Editor is the element that takes the text; Paragraphs are its direct children that make up its lines. An editor
	// without Paragraphs is a form field, or is read as it is rendered.
	Editor     []string `yaml:"editor" json:"editor"`
	Paragraphs string   `yaml:"paragraphs" json:"paragraphs"`
	// Newline is how lines are typed: NewlineInsert, the default, in one insert of the whole text; or NewlineBreak, each
	// followed by a line break, for an editor that makes paragraphs of an insert and does not read them back exactly.
	Newline string `yaml:"newline" json:"newline,omitempty"`
	// Form encloses the editor and its controls.
	Form []string `yaml:"form" json:"form"`
	// Send and Stop are looked for inside Form only.
	Send []string `yaml:"send" json:"send"`
	Stop []string `yaml:"stop" json:"stop"`
	// Idle is the sign, inside Form, that no answer is being written. It is for pages whose turns have no finish marks.
	Idle []string `yaml:"idle" json:"idle,omitempty"`
	// Turns are the containers of user messages and answers. Roles are the nodes inside (or outside) of them that hold one
	// role's text; RoleAttributes name the attributes that tell the role, UserRole and AssistantRole their values. Where a
	// class tells the role, User and Assistant are selectors for the container or its first role node.
	Turns          []string `yaml:"turns" json:"turns"`
	Roles          []string `yaml:"roles" json:"roles"`
	RoleAttributes []string `yaml:"role_attributes" json:"role_attributes"`
	UserRole       string   `yaml:"user_role" json:"user_role"`
	AssistantRole  string   `yaml:"assistant_role" json:"assistant_role"`
	User           []string `yaml:"user" json:"user,omitempty"`
	Assistant      []string `yaml:"assistant" json:"assistant,omitempty"`
	// TurnID and MessageID are attributes that hold ids.
	TurnID    []string `yaml:"turn_id" json:"turn_id"`
	MessageID []string `yaml:"message_id" json:"message_id"`
	// UserText is the part of a user message that holds its words. UserMarkdown tells that they are shown as rendered
	// markdown, so that what was sent cannot be compared with what is shown.
	UserText     []string `yaml:"user_text" json:"user_text"`
	UserMarkdown bool     `yaml:"user_markdown" json:"user_markdown,omitempty"`
	// Optimistic tells that the page shows a message before the site has it: it counts once an answer follows, or once it
	// stands there after a reload.
	Optimistic bool `yaml:"optimistic" json:"optimistic,omitempty"`
	// Content encloses an assistant's words; a status region is never inside it.
	Content []string `yaml:"content" json:"content"`
	// CodeBlock is a code card; only its CodeText parts are text, not its header.
	CodeBlock string `yaml:"code_block" json:"code_block"`
	CodeText  string `yaml:"code_text" json:"code_text"`
	// Drop are parts of a message that are not its text; Activity are reasoning and tool parts.
	Drop     []string `yaml:"drop" json:"drop"`
	Activity []string `yaml:"activity" json:"activity"`
	// Finished is the sign inside a finished turn, Busy that of one that still changes.
	Finished []string `yaml:"finished" json:"finished"`
	Busy     []string `yaml:"busy" json:"busy"`
	// Outside are regions whose content never belongs to the conversation.
	Outside []string `yaml:"outside" json:"outside"`
	// Scroller is what scrolls a long conversation; empty means the element that scrolls around its turns.
	Scroller []string `yaml:"scroller" json:"scroller"`
	// Links are links to conversations.
	Links []string `yaml:"links" json:"links"`
}

// Ways to type a new line.
const (
	NewlineInsert = "insert"
	NewlineBreak  = "break"
)

// Kinds of page states.
const (
	// UserAction: only the user of the login can go on.
	UserAction = "user_action"
	// Limited: the site refuses messages for a time.
	Limited = "limited"
	// NotReady: the page does not work now.
	NotReady = "not_ready"
	// Missing: the site says that the conversation is not there.
	Missing = "missing"
	// Failed: the site says that the current turn failed.
	Failed = "failed"
)

// State is a condition of the page that is not an answer.
type State struct {
	// Name is unique in its profile. Class is what activities report; it defaults to the name.
	Name  string `yaml:"state" json:"state"`
	Class string `yaml:"class" json:"class"`
	Kind  string `yaml:"kind" json:"kind"`
	// Ask is what the person has to do, for kind user_action.
	Ask string `yaml:"ask" json:"ask,omitempty"`
	// Rules are alternatives.
	Rules []Rule `yaml:"rules" json:"rules"`
	// Until patterns find the end of a limit in the state's text, by groups: hour, minute, ampm (local clock), or
	// hours, minutes, seconds (from now), or rfc3339.
	Until []Pattern `yaml:"until" json:"until,omitempty"`
}

// Rule holds when all of its conditions do.
type Rule struct {
	// Select finds visible elements; with Text, one of them must show it. Kind failed looks at the status regions of the
	// current turn only.
	Select []string `yaml:"select" json:"select,omitempty"`
	// Text has alternatives per language, compared without regard to case. Whole wants the element's whole text.
	Text  map[string][]string `yaml:"text" json:"text,omitempty"`
	Whole bool                `yaml:"whole" json:"whole,omitempty"`
	// Present elements need not be visible. Absent ones must not be visible.
	Present []string `yaml:"present" json:"present,omitempty"`
	Absent  []string `yaml:"absent" json:"absent,omitempty"`
	// Title is a part of the document's title, per language.
	Title map[string][]string `yaml:"title" json:"title,omitempty"`
}

// Settle is the site's rule for a finished turn.
type Settle struct {
	// Looks that must agree, over at least Stable.
	Looks  int           `yaml:"looks" json:"looks"`
	Stable time.Duration `yaml:"stable" json:"stable"`
	// Extra is how much longer a turn without a valid receipt, or one that failed, must stay as it is.
	Extra time.Duration `yaml:"extra" json:"extra"`
	// DriftAfter is how long a quiet turn may lack the finish signs before the page counts as changed.
	DriftAfter time.Duration `yaml:"drift_after" json:"drift_after"`
	// ReloadAfter is how long an unfinished turn may stay unchanged before its page is reloaded; doubled each time.
	ReloadAfter time.Duration `yaml:"reload_after" json:"reload_after"`
}

// Timings of one site.
type Timings struct {
	// SendGap is the least time between two sends of one browser. MinInterval is the default floor between two turns of
	// a run.
	SendGap     time.Duration `yaml:"send_gap" json:"send_gap"`
	MinInterval time.Duration `yaml:"min_interval" json:"min_interval"`
	// Cooldown is how long a browser rests after a limit without a stated end.
	Cooldown time.Duration `yaml:"cooldown" json:"cooldown"`
	// Open bounds loading a page until it can be used. Hydrate is how long a page state, or a conversation without any
	// message, must last before it is believed; until then the page may still be loading. Control bounds the wait for the
	// send control, Commit the one for the sent message, Address the one for a new conversation's durable address.
	Open    time.Duration `yaml:"open" json:"open"`
	Hydrate time.Duration `yaml:"hydrate" json:"hydrate"`
	Control time.Duration `yaml:"control" json:"control"`
	Commit  time.Duration `yaml:"commit" json:"commit"`
	Address time.Duration `yaml:"address" json:"address"`
	// Look is the time between two looks at a page that is open; LookMax at one that has been quiet for long.
	Look    time.Duration `yaml:"look" json:"look"`
	LookMax time.Duration `yaml:"look_max" json:"look_max"`
	// Pace is how fast a run tries again; what is absent has the run's own default.
	Pace Pace `yaml:"pace" json:"pace"`
}

// Pace are the waits of a run on this site. It is fixed with the start of a run.
type Pace struct {
	// Retry is the wait before the second attempt of a prompt; it doubles. Defer is the wait after a send that was
	// deferred without a time; it doubles too.
	Retry time.Duration `yaml:"retry" json:"retry"`
	Defer time.Duration `yaml:"defer" json:"defer"`
	// Reconcile are the waits before the looks for a message of unknown outcome, Unclear those before a check that could
	// not tell is run again.
	Reconcile []time.Duration `yaml:"reconcile" json:"reconcile"`
	Unclear   []time.Duration `yaml:"unclear" json:"unclear"`
	// Probe is the wait before the first probe of a blocked run; it grows.
	Probe time.Duration `yaml:"probe" json:"probe"`
	// Heartbeat is after how long a silent send is given up.
	Heartbeat time.Duration `yaml:"heartbeat" json:"heartbeat"`
}

// Limits of one site.
type Limits struct {
	// Prompt is the longest prompt in characters; longer ones may be cut silently.
	Prompt int `yaml:"prompt" json:"prompt"`
}

// Pattern is a regular expression that matches a whole path or finds a part of a text.
type Pattern struct {
	*regexp.Regexp
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *Pattern) UnmarshalYAML(n *yaml.Node) error {
	re, err := regexp.Compile(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %q is no regular expression: %v", n.Line, n.Value, err)}}
	}
	p.Regexp = re
	return nil
}

// MarshalText writes the expression.
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// groups returns the named groups of a match; nil when s does not match.
func (p Pattern) groups(s string) map[string]string {
	match := p.FindStringSubmatch(s)
	if match == nil {
		return nil
	}
	found := map[string]string{}
	for i, name := range p.SubexpNames() {
		if name != "" {
			found[name] = match[i]
		}
	}
	return found
}
