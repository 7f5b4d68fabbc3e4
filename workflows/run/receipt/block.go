package receipt

import "strings"

// marker is one start or end marker in an answer.
type marker struct {
	at, after int // where it begins, and the first byte behind it
	end       bool
	version   string // empty when the marker is not whole
}

// markers finds every marker of any version, in the order of the answer.
func markers(answer string) []marker {
	var found []marker
	for from := 0; ; {
		i := strings.Index(answer[from:], markerName)
		if i < 0 {
			return found
		}
		i += from
		from = i + len(markerName)
		m := marker{after: from}
		switch {
		case strings.HasSuffix(answer[:i], endOpen):
			m.at, m.end = i-len(endOpen), true
		case strings.HasSuffix(answer[:i], startOpen):
			m.at = i - len(startOpen)
		default:
			continue
		}
		digits := 0
		for digits < 6 && from+digits < len(answer) && answer[from+digits]-'0' < 10 {
			digits++
		}
		if strings.HasPrefix(answer[from+digits:], markerClose) {
			m.version = answer[from : from+digits]
			m.after = from + digits + len(markerClose)
		}
		found = append(found, m)
	}
}

// closed tells whether the last marker is a whole end marker.
func closed(marks []marker) bool {
	return len(marks) > 0 && marks[len(marks)-1].end && marks[len(marks)-1].version != ""
}

// block is the last block of an answer.
type block struct {
	before              []marker // the markers before it
	version, endVersion string
	// json is what stands between the marker lines, without the frame before it; empty when it begins with no object.
	json string
	// members of the object; nil when json is invalid, and then problem says why.
	members  []member
	problem  string
	trailing bool // text follows the end marker
}

// maxCandidates bounds how many start markers before the last end marker are tried. A marker inside a JSON string is one
// candidate too many.
const maxCandidates = 8

// locate finds the last block, searching from the end.
func locate(answer string, marks []marker) (*block, *fault) {
	last := len(marks) - 1
	if !closed(marks) {
		return nil, &fault{CodeIncomplete, "the end marker " + EndMarker + " is missing or not whole"}
	}
	var guess *block
	for i, tries := last-1, 0; i >= 0 && tries < maxCandidates; i-- {
		if marks[i].end || marks[i].version == "" {
			continue
		}
		tries++
		b := &block{
			before: marks[:i], version: marks[i].version, endVersion: marks[last].version,
			trailing: !closing(answer[marks[last].after:]),
		}
		b.open(answer[marks[i].after:marks[last].at])
		if b.members != nil {
			return b, nil
		}
		if guess == nil || guess.json == "" && b.json != "" {
			guess = b
		}
	}
	if guess == nil {
		return nil, &fault{CodeIncomplete, "the start marker " + StartMarker + " is missing or not whole"}
	}
	return guess, nil
}

// open reads what stands between the markers.
func (b *block) open(body string) {
	if b.json = unframe(body); b.json == "" {
		b.problem = "the text there does not begin with {"
		return
	}
	if len(b.json) > maxBlock {
		return
	}
	members, rest, err := object(b.json)
	if err != nil {
		members, rest, err = object(plainSpaces(b.json))
	}
	ended := strings.HasPrefix(strings.TrimLeftFunc(rest, blank), endOpen+markerName)
	switch {
	case err != nil:
		b.problem = err.Error()
	case closing(rest) || ended:
		b.members = members
		b.trailing = b.trailing || ended
	default:
		b.problem = "there is text after the object"
	}
}

// differs tells whether a whole block of another content stands before the last one. A pair of markers without an object
// is a mention, and a start without an end is no block.
func differs(answer string, last *block) bool {
	content := ""
	for marks := last.before; len(marks) > 0; marks = marks[1:] {
		m := marks[0]
		if m.end || m.version == "" {
			continue
		}
		if content == "" {
			content = squash(last.json)
		}
		object, same := false, false
		for i := 1; i < min(len(marks), 2*maxCandidates) && !same; i++ {
			if !marks[i].end {
				continue
			}
			json := unframe(answer[m.after:marks[i].at])
			object = object || json != ""
			if same = len(json) <= maxBlock && squash(json) == content; same {
				marks = marks[i:]
			}
		}
		if object && !same {
			return true
		}
	}
	return false
}

// squash takes away what another rendering of the same block may change: white space, escapes, and the frame.
func squash(json string) string {
	if i := strings.LastIndexByte(json, '}'); i >= 0 && closing(json[i+1:]) {
		json = json[:i+1]
	}
	return strings.Map(func(r rune) rune {
		if r == '\\' || blank(r) {
			return -1
		}
		return r
	}, json)
}
