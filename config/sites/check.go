package sites

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// places finds the line of a value in the files a profile was merged from.
type places struct {
	root  *yaml.Node
	files origin
	file  string
}

// at describes the place of a path of keys and indexes; of the innermost part of it that exists.
func (p places) at(path ...string) string {
	node, file := p.root, p.file
	for _, step := range path {
		next := child(node, step)
		if next == nil {
			break
		}
		node = next
	}
	if from, ok := p.files[node]; ok {
		file = from
	}
	return fmt.Sprintf("%s:%d: %s", file, max(node.Line, 1), strings.Join(path, "."))
}

func child(n *yaml.Node, step string) *yaml.Node {
	switch n.Kind {
	case yaml.MappingNode:
		if i := find(n.Content, step); i >= 0 {
			return n.Content[i+1]
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}

// complete fills in what follows from other values.
func (s *Site) complete() {
	for i := range s.States {
		if s.States[i].Class == "" {
			s.States[i].Class = s.States[i].Name
		}
	}
}

func (s *Site) seal() error {
	canonical, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("site %s: %w", s.Name, err)
	}
	sum := sha256.Sum256(canonical)
	s.digest = hex.EncodeToString(sum[:])
	return nil
}

// checker collects problems.
type checker struct {
	places
	problems []error
}

func (c *checker) want(ok bool, reason string, path ...string) {
	if !ok {
		c.problems = append(c.problems, errors.New(c.at(path...)+": "+reason))
	}
}

func (s *Site) check(p places) error {
	c := &checker{places: p}
	c.want(validName(s.Name), "want 1 to 40 lower case letters, digits, - or _", "site")
	c.want(s.Version > 0, "want 1 or more", "version")
	_, err := time.Parse(time.DateOnly, s.Facts)
	c.want(err == nil, "want a day like 2026-10-31", "facts")
	c.want(len(s.Origins) > 0, "want at least one origin", "origins")
	for i, origin := range s.Origins {
		c.want(validOrigin(origin), "want https://host[:port], or http:// on a loopback address", "origins", strconv.Itoa(i))
	}
	c.want(!s.MessageProbe.Allowed || strings.TrimSpace(s.MessageProbe.Text) != "", "want the line to send", "message_probe", "text")
	s.checkURLs(c)
	s.checkPage(c)
	s.checkStates(c)
	s.checkNumbers(c)
	return errors.Join(c.problems...)
}

func validName(name string) bool {
	return len(name) > 0 && len(name) <= 40 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

func validOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())
}

func (s *Site) checkURLs(c *checker) {
	c.want(strings.HasPrefix(s.URLs.Start, "/"), "want a path that begins with /", "urls", "start")
	c.want(len(s.URLs.Conversation) > 0, "want at least one pattern", "urls", "conversation")
	for i, p := range s.URLs.Conversation {
		c.want(slices.Contains(p.SubexpNames(), "id"), "want a group (?P<id>…)", "urls", "conversation", strconv.Itoa(i))
	}
	for i, p := range s.URLs.Created {
		c.want(slices.Contains(p.SubexpNames(), "unix_hex"), "want a group (?P<unix_hex>…)", "urls", "created", strconv.Itoa(i))
	}
	lists := map[string][]Pattern{
		"conversation": s.URLs.Conversation, "provisional": s.URLs.Provisional, "new_chat": s.URLs.NewChat,
	}
	for _, name := range []string{"conversation", "provisional", "new_chat"} {
		for i, p := range lists[name] {
			text := p.String()
			c.want(strings.HasPrefix(text, "^") && strings.HasSuffix(text, "$"), "want ^…$: it matches the whole path",
				"urls", name, strconv.Itoa(i))
		}
	}
}

func (s *Site) checkPage(c *checker) {
	byClass := len(s.Page.User) > 0 || len(s.Page.Assistant) > 0
	needed := map[string]bool{
		"editor": true, "form": true, "send": true, "turns": true, "roles": true, "finished": len(s.Page.Idle) == 0,
		"role_attributes": !byClass, "user": byClass, "assistant": byClass,
	}
	for name, list := range s.Page.lists() {
		c.want(len(list) > 0 || !needed[name], "want at least one", "page", name)
		for i, selector := range list {
			c.want(validSelector(selector), "not a CSS selector: "+strconv.Quote(selector), "page", name, strconv.Itoa(i))
		}
	}
	for name, selector := range map[string]string{
		"paragraphs": s.Page.Paragraphs, "code_block": s.Page.CodeBlock, "code_text": s.Page.CodeText,
	} {
		c.want(selector == "" || validSelector(selector), "not a CSS selector: "+strconv.Quote(selector), "page", name)
	}
	c.want(slices.Contains([]string{"", NewlineInsert, NewlineBreak}, s.Page.Newline), "want insert or break", "page", "newline")
	c.want(byClass || s.Page.UserRole != "", "want the value that marks a user message", "page", "user_role")
	c.want(byClass || s.Page.AssistantRole != "", "want the value that marks an answer", "page", "assistant_role")
}

// lists are the page's lists by their key.
func (p *Page) lists() map[string][]string {
	return map[string][]string{
		"shadow": p.Shadow, "idle": p.Idle, "user": p.User, "assistant": p.Assistant,
		"editor": p.Editor, "form": p.Form, "send": p.Send, "stop": p.Stop, "turns": p.Turns, "roles": p.Roles,
		"role_attributes": p.RoleAttributes, "turn_id": p.TurnID, "message_id": p.MessageID, "user_text": p.UserText,
		"content": p.Content, "drop": p.Drop, "activity": p.Activity, "finished": p.Finished, "busy": p.Busy,
		"outside": p.Outside, "scroller": p.Scroller, "links": p.Links,
	}
}

// validSelector finds the usual slips; the page itself has the last word.
func validSelector(selector string) bool {
	var open []rune
	var quote rune
	for _, r := range selector {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '[' || r == '(':
			open = append(open, map[rune]rune{'[': ']', '(': ')'}[r])
		case r == ']' || r == ')':
			if len(open) == 0 || open[len(open)-1] != r {
				return false
			}
			open = open[:len(open)-1]
		case r == '{' || r == '}' || r == ';' || r == '<':
			return false
		}
	}
	return strings.TrimSpace(selector) != "" && quote == 0 && len(open) == 0
}

func (s *Site) checkStates(c *checker) {
	seen := map[string]bool{}
	kinds := []string{UserAction, Limited, NotReady, Missing, Failed}
	for i, state := range s.States {
		at := []string{"states", strconv.Itoa(i)}
		c.want(validName(state.Name), "want a name of lower case letters, digits, - or _", append(at, "state")...)
		c.want(!seen[state.Name], "the state "+strconv.Quote(state.Name)+" stands here twice", append(at, "state")...)
		seen[state.Name] = true
		c.want(slices.Contains(kinds, state.Kind), "want one of "+strings.Join(kinds, ", "), append(at, "kind")...)
		c.want(state.Kind != UserAction || state.Ask != "", "want what the person has to do", append(at, "ask")...)
		c.want(len(state.Rules) > 0, "want at least one rule", append(at, "rules")...)
		for j, rule := range state.Rules {
			here := append(slices.Clone(at), "rules", strconv.Itoa(j))
			c.want(len(rule.Select)+len(rule.Present)+len(rule.Title) > 0, "want select, present or title", here...)
			c.want(len(rule.Text) == 0 || len(rule.Select) > 0, "text needs select", append(here, "text")...)
			for _, selector := range slices.Concat(rule.Select, rule.Present, rule.Absent) {
				c.want(validSelector(selector), "not a CSS selector: "+strconv.Quote(selector), here...)
			}
		}
	}
}

func (s *Site) checkNumbers(c *checker) {
	c.want(s.Settle.Looks >= 1 && s.Settle.Looks <= 20, "want 1 to 20", "settle", "looks")
	c.want(s.Limits.Prompt > 0, "want the longest prompt in characters", "limits", "prompt")
	notNegative := func(d time.Duration, path ...string) { c.want(d >= 0, "want 0s or more", path...) }
	positive := func(d time.Duration, path ...string) { c.want(d > 0, "want more than 0s", path...) }
	notNegative(s.Settle.Stable, "settle", "stable")
	notNegative(s.Settle.Extra, "settle", "extra")
	positive(s.Settle.DriftAfter, "settle", "drift_after")
	positive(s.Settle.ReloadAfter, "settle", "reload_after")
	notNegative(s.Timings.SendGap, "timings", "send_gap")
	notNegative(s.Timings.MinInterval, "timings", "min_interval")
	positive(s.Timings.Cooldown, "timings", "cooldown")
	positive(s.Timings.Open, "timings", "open")
	notNegative(s.Timings.Hydrate, "timings", "hydrate")
	positive(s.Timings.Control, "timings", "control")
	positive(s.Timings.Commit, "timings", "commit")
	positive(s.Timings.Address, "timings", "address")
	positive(s.Timings.Look, "timings", "look")
	c.want(s.Timings.LookMax >= s.Timings.Look, "want at least timings.look", "timings", "look_max")
}
