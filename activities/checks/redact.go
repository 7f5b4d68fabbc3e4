package checks

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

const maxLine = 200 // characters

var (
	escapes = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-Z\\-_])`)
	// secrets are what looks like one, each with what stays of it.
	secrets = []struct {
		pattern *regexp.Regexp
		keep    string
	}{
		{regexp.MustCompile(`(?i)(://[^/\s:@]*:)[^/\s@]+@`), "${1}***@"},
		{regexp.MustCompile(`(?i)\b((?:bearer|basic)\s+)[a-z0-9._~+/=-]{6,}`), "${1}***"},
		{regexp.MustCompile(`(?i)([a-z0-9_.-]*(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|` +
			`credential|authorization|cookie)[a-z0-9_.-]*["']?\s*[=:]\s*)("[^"]*"?|'[^']*'?|[^\s,;&]+)`), "${1}***"},
		{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]+){0,2}`), "***"},
		{regexp.MustCompile(`\b(?:sk|pk|rk|gh[pousr]|github_pat|glpat|xox[a-z]|npm|pypi|hf|AKIA|ASIA|AIza)[-_]?[A-Za-z0-9_-]{12,}`), "***"},
		{regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----.*`), "***"},
	}
	longRun = regexp.MustCompile(`[A-Za-z0-9+]{32,}={0,2}`)
)

// shown makes one line for people of a text that may hold anything: one line, no control characters, nothing that looks
// like a secret, at most 200 characters.
func shown(text string) string {
	text = escapes.ReplaceAllString(strings.ToValidUTF8(text, "�"), "")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	}), " ")
	for _, secret := range secrets {
		text = secret.pattern.ReplaceAllString(text, secret.keep)
	}
	text = longRun.ReplaceAllStringFunc(text, func(run string) string {
		if strings.ContainsAny(run, "0123456789") && strings.IndexFunc(run, unicode.IsLetter) >= 0 {
			return "***"
		}
		return run
	})
	if runes := []rune(text); len(runes) > maxLine {
		text = string(runes[:maxLine-1]) + "…"
	}
	return text
}

var telling = regexp.MustCompile(`(?i)\b(fail(ed|ure)?|error|panic|fatal|exception|assert(ion)?|not ok)\b`)

// tellingLine picks the line of an output that says most: the first that speaks of a failure when there was one, else the
// last that is not blank.
func tellingLine(output []byte, failed bool) string {
	last := ""
	for line := range strings.Lines(string(output)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if failed && telling.MatchString(line) {
			return line
		}
		last = line
	}
	return last
}

// commandLine joins an argument vector for people; it is never executed.
func commandLine(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		if word == "" || strings.ContainsAny(word, " \t'\"") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words[i] = word
	}
	return strings.Join(words, " ")
}

func withoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	return u.String()
}
