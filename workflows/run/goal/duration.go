package goal

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Duration is a length of time that is written as a Go duration string, like 90s, 10m or 1h30m, in JSON and YAML.
type Duration time.Duration

// Std is the duration as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String leaves out the zero seconds and minutes that time.Duration writes: 10m, not 10m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalJSON writes String.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a Go duration string; a bare number has no unit and is refused.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil || string(data) == "null" {
		return fmt.Errorf(`must be a duration with a unit, like "90s" or "10m", not %.40s`, data)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`must be a duration with a unit, like "90s" or "10m", not %.40q`, text)
	}
	*d = Duration(parsed)
	return nil
}
