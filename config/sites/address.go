package sites

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Address is what an URL of a site means.
type Address struct {
	// ID of a conversation in its canonical spelling, and its canonical URL; empty for other pages.
	ID  string
	URL string
	// Project of a conversation or of a project's new chat page.
	Project string
	// Provisional: a conversation whose durable address is not known yet. NewChat: the first message creates one.
	Provisional bool
	NewChat     bool
}

// Address reads an URL of this site. Foreign origins and addresses with credentials are refused; a page that is neither
// conversation nor new chat is the zero Address.
func (s *Site) Address(raw string) (Address, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return Address{}, fmt.Errorf("site %s: not an URL: %w", s.Name, err)
	}
	origin := strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host)
	if u.User != nil || !slices.Contains(s.Origins, origin) {
		return Address{}, fmt.Errorf("site %s: %s is not one of its origins (%s)", s.Name, strconv.Quote(origin), strings.Join(s.Origins, ", "))
	}
	path := u.EscapedPath()
	if decoded, err := url.PathUnescape(path); err == nil {
		path = decoded
	}
	if path == "" {
		path = "/"
	}
	for _, p := range s.URLs.Conversation {
		if found := p.groups(path); found != nil && found["id"] != "" {
			id := strings.ToLower(found["id"])
			return Address{ID: id, Project: found["project"], URL: origin + strings.Replace(path, found["id"], id, 1)}, nil
		}
	}
	for _, p := range s.URLs.Provisional {
		if p.MatchString(path) {
			return Address{Provisional: true}, nil
		}
	}
	for _, p := range s.URLs.NewChat {
		if found := p.groups(path); found != nil {
			return Address{NewChat: true, Project: found["project"], URL: origin + path}, nil
		}
	}
	return Address{}, nil
}

// Conversation returns the canonical id and URL of a conversation's address.
func (s *Site) Conversation(raw string) (id, canonicalURL string, err error) {
	a, err := s.Address(raw)
	if err != nil {
		return "", "", err
	}
	if a.ID == "" {
		return "", "", fmt.Errorf("site %s: %q is not the address of a conversation", s.Name, raw)
	}
	return a.ID, a.URL, nil
}

// CreatedAt is when a conversation was created, as its id tells; the zero time when it does not tell, or nothing sensible.
func (s *Site) CreatedAt(id string, now time.Time) time.Time {
	for _, p := range s.URLs.Created {
		seconds, err := strconv.ParseInt(p.groups(id)["unix_hex"], 16, 64)
		if at := time.Unix(seconds, 0).UTC(); err == nil && at.After(firstChat) && at.Before(now.Add(time.Hour)) {
			return at
		}
	}
	return time.Time{}
}

// firstChat is before any conversation of a chat site that profiles are written for.
var firstChat = time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC)

// NewChat returns the canonical address of a page where the first message creates a conversation; an empty address is the
// site's start page.
func (s *Site) NewChat(raw string) (string, error) {
	if raw == "" {
		return s.StartURL(), nil
	}
	a, err := s.Address(raw)
	if err != nil {
		return "", err
	}
	if !a.NewChat {
		return "", fmt.Errorf("site %s: no new conversation can begin at %q", s.Name, raw)
	}
	return a.URL, nil
}

// StartURL is the address of an empty new chat.
func (s *Site) StartURL() string { return s.Origins[0] + s.URLs.Start }

// Owns tells whether an URL is of one of the site's origins.
func (s *Site) Owns(raw string) bool {
	_, err := s.Address(raw)
	return err == nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// End finds when a limit ends in the text that states it. It returns the zero time when the text does not say.
func (s *State) End(text string, now time.Time) time.Time {
	for _, p := range s.Until {
		found := p.groups(text)
		if found == nil {
			continue
		}
		if at, err := time.Parse(time.RFC3339, found["rfc3339"]); err == nil {
			return at
		}
		if _, clock := found["hour"]; clock {
			return nextClock(found, now)
		}
		if wait := number(found["hours"])*60*60 + number(found["minutes"])*60 + number(found["seconds"]); wait > 0 {
			return now.Add(time.Duration(wait) * time.Second)
		}
	}
	return time.Time{}
}

// nextClock is the next time at which a local clock shows what the text says.
func nextClock(found map[string]string, now time.Time) time.Time {
	hour, minute := number(found["hour"]), number(found["minute"])
	switch half := strings.ToLower(strings.ReplaceAll(found["ampm"], ".", "")); {
	case half == "pm" && hour < 12:
		hour += 12
	case half == "am" && hour == 12:
		hour = 0
	}
	if hour > 23 || minute > 59 {
		return time.Time{}
	}
	at := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, now.Location())
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
